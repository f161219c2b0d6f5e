// The events of a run: very many of them, selected by the server.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { environment, failedRun, program, State } from './state.mjs'

const batches = 3000
const drive = join(dirname(program), 'thalweg-drive')
let state, server, browser, failed

before(async () => {
  state = new State()
  failed = await failedRun(state)
  if (existsSync(drive))
    await promisify(execFile)(
      drive,
      ['--state', join(state.dir, '.thalweg'), '--workspace', 'large', '--batches', `${batches}`],
      { env: environment },
    )
  const config = `version: 1\nworkspaces:\n  main: {scripts: ., parameters: true}\n  large: {scripts: .}\n`
  server = await Server.start(state, { flags: [], config })
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

const lists = (page) => page.getByRole('region', { name: 'Events' })

test('very many events are searched by the server, and only those in view are drawn', async (t) => {
  if (!existsSync(drive)) return t.skip(`${drive} is not there`)
  const tab = await Tab.open(browser, server, '/w/large/runs/1?least=noise')
  const { page } = tab
  await page.getByText(/^What happened: 6,\d\d\d events like that$/).waitFor()
  const list = lists(page)
  assert.ok((await list.getByRole('row').count()) < 60)
  await list.getByText('run completed').waitFor() // the latest is first
  await tab.accessible()

  // Who scrolls is left there, and the earliest is at the end.
  await list.evaluate((e) => e.scrollTo(0, e.scrollHeight))
  await list.getByText('run created').waitFor()
  assert.ok((await list.getByRole('row').count()) < 60)

  // A search finds what is not drawn; the address has it.
  await page.getByRole('searchbox', { name: 'Search' }).last().fill('batch 2345,')
  await page.getByText('What happened: 2 events like that').waitFor()
  await page.waitForURL(/says=batch\+2345/)
  await page.reload()
  await page.getByText('What happened: 2 events like that').waitFor()
  await page.getByText('Kinds', { exact: true }).click()
  await page.getByRole('button', { name: 'Not batch claimed' }).click()
  await page.getByText('What happened: 1 event like that').waitFor()
  await page.waitForURL(/not=batch_claimed/)

  // Its event leads to the record of its try, wherever that is in the list of tries.
  await list.getByRole('link', { name: 'n batch 2345' }).click()
  await page.waitForURL(/tab=attempts/)
  await page.getByRole('button', { name: 'Try 1 of batch 2345', expanded: true }).waitFor()
  await tab.close()
})

test('what matters is shown first, by kind and by node', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${failed}`)
  const { page } = tab
  await page.getByText('What happened').click()
  const list = lists(page)
  await list.getByText('batch ended: failed').first().waitFor()
  assert.equal(await list.getByText('batch claimed').count(), 0)
  await page.getByText('Kinds', { exact: true }).click()
  await page.getByRole('button', { name: 'Only batch claimed' }).click()
  await list.getByText('batch claimed').first().waitFor()
  assert.equal(await list.getByText('run created').count(), 0)
  await page.getByRole('button', { name: 'Only run created' }).click()
  await list.getByText('run created').waitFor()
  await page.locator('details select.node').selectOption('read')
  await list.getByText('run created').waitFor({ state: 'detached' })
  await list.getByText('batch claimed').first().waitFor()
  await page.getByRole('button', { name: 'Show what matters' }).click()
  await list.getByText('batch ended: failed').first().waitFor()
  await page.getByRole('searchbox', { name: 'Search' }).last().fill('12;5')
  await page.getByText(/^What happened: \d+ events? like that$/).waitFor()
  for (const width of [1280, 360]) {
    await page.setViewportSize({ width, height: 800 })
    await list.scrollIntoViewIfNeeded()
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      await tab.screenshot('events', { dark })
      await tab.accessible()
    }
    await tab.fits()
  }
  await tab.close()
})

test('what comes while the list is pointed at is counted, and moves nothing', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${failed}?least=noise`)
  const { page } = tab
  await page.getByText(/^What happened: \d+ events like that$/).waitFor()
  const list = lists(page)
  await list.hover()
  const before = await list.getByRole('row').allTextContents()
  await state.thalweg(['invalidate', `${failed}`, '--yes', '--reason', 'wrong month'])
  const fresh = page.getByRole('button', { name: /^\d+ new$/ })
  await fresh.waitFor()
  assert.deepEqual(await list.getByRole('row').allTextContents(), before)
  await fresh.click()
  await list.getByText('wrong month').first().waitFor()
  await tab.close()
})
