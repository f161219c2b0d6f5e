import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { finishedRun, State } from './state.mjs'

let state, server, browser

before(async () => {
  state = new State()
  await finishedRun(state)
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('the page loads, signed in, at each width', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  await tab.page.getByText('signed in as').waitFor()
  assert.equal(await tab.page.title(), 'Thalweg')
  await tab.accessible()
  for (const width of [360, 1280, 2560]) {
    for (const dark of [false, true]) await tab.screenshot('first', { width, dark })
  }
  await tab.fits()
  await tab.close()
})

test('whoever has not signed in gets the application, and nothing else', async () => {
  const tab = await Tab.open(browser, server, '/w/main', { as: null })
  await tab.page.getByText('not signed in').waitFor()
  await tab.close()
})

test('a user has their own grants', async () => {
  const user = await server.user('view', { workspace: 'main', role: 'viewer' })
  const tab = await Tab.open(browser, server, '/', { as: user })
  await tab.page.getByText('signed in as view').waitFor()
  await tab.close()
})

test('what is wrong on a page is seen', async () => {
  const tab = await Tab.open(browser, server)
  await tab.page.evaluate(() => {
    const at = document.querySelector('main')
    at.setAttribute('style', 'color: red')
    at.append(Object.assign(document.createElement('img'), { src: 'http://other.invalid/x.png' }))
    setTimeout(() => {
      at.innerHTML = '<b>markup</b>'
    })
  })
  const wanted = [/policy: style-src/, /policy: img-src/, /policy: require-trusted-types-for/, /error: TypeError/]
  while (!wanted.every((one) => tab.problems.some((p) => one.test(p)))) await once(tab, 'problem')
  tab.forgive()
  await tab.page.evaluate(() => fetch('http://other.invalid/').catch(() => {}))
  assert.match(tab.forgive().join(), /connect-src/)
  await tab.page.goto('data:text/html,<script>location = "http://other.invalid/"</script>').catch(() => {})
  while (!tab.problems.some((p) => p.startsWith('request: http://other.invalid/'))) await once(tab, 'problem')
  tab.forgive()
  await tab.close()
})
