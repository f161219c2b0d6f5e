import { expect, test } from 'vitest'
import { whenRenewed } from './renewed'

test('a part that cannot be loaded is said, and is no error of the page', () => {
  const page = new EventTarget()
  let said = 0
  whenRenewed(() => said++, page)
  const event = new Event('vite:preloadError', { cancelable: true })
  page.dispatchEvent(event)
  expect(said).toBe(1)
  expect(event.defaultPrevented).toBe(true)
})
