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

test('whoever has not signed in gets the application, and nothing else', async () => {
  const tab = await Tab.open(browser, server, '/w/main', { as: null })
  await tab.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await tab.accessible()
  await tab.close()
})

test('a name and a password sign in, and what is wrong is said', async () => {
  const user = await server.user('view', { workspace: 'main', role: 'viewer' })
  const tab = await Tab.open(browser, server, '/w/main/runs/1', { as: null })
  await tab.page.getByLabel('Name').fill(user.name)
  await tab.page.getByLabel('Password').fill('something else')
  await tab.page.getByRole('button', { name: 'Sign in' }).click()
  await tab.page.getByRole('alert').waitFor()
  await tab.page.getByLabel('Password').fill(user.password)
  await tab.page.keyboard.press('Enter')
  await tab.page.getByRole('heading', { name: 'orders #1' }).waitFor()
  assert.equal(await tab.page.getByRole('button', { name: 'Do again' }).count(), 0, 'a viewer orders nothing')
  await tab.page.evaluate(() => localStorage.setItem('thalweg/kept', 'what was asked'))
  await tab.page.getByText(user.name, { exact: true }).click()
  await tab.page.getByRole('button', { name: 'Sign out' }).click()
  await tab.page.getByRole('heading', { name: 'Sign in' }).waitFor()
  assert.equal(await tab.page.evaluate(() => localStorage.length), 0)
  await tab.close()
})

test('what is wrong on a page is seen', async () => {
  const tab = await Tab.open(browser, server)
  const seen = async (...wanted) => {
    while (!wanted.every((one) => tab.problems.some((p) => one.test(p)))) await once(tab, 'problem')
  }
  await tab.page.evaluate(() => {
    const at = document.querySelector('main')
    at.setAttribute('style', 'color: red')
    at.append(Object.assign(document.createElement('img'), { src: 'http://other.invalid/x.png' }))
    fetch('http://other.invalid/').catch(() => {})
    setTimeout(() => {
      at.innerHTML = '<b>markup</b>'
    })
  })
  await seen(
    /policy: style-src/,
    /policy: img-src/,
    /policy: connect-src/,
    /policy: require-trusted-types-for/,
    /error: TypeError/,
  )
  await tab.page.evaluate(() => alert('x'))
  await seen(/dialog: x/)
  await tab.page.goto('http://other.invalid/').catch(() => {})
  await seen(/request: http:\/\/other.invalid\/$/)
  await assert.rejects(tab.close())
})

test('signing in goes on to paths of this server only', async () => {
  const tab = await Tab.open(browser, server)
  for (const next of [
    '//other.invalid/x',
    '/\\other.invalid',
    'http://other.invalid/',
    'javascript:alert(1)',
    'data:text/html,x',
    'http://[',
  ]) {
    const start = new URL(server.signIn)
    start.searchParams.set('next', next)
    await tab.page.goto('about:blank')
    await tab.page.goto(start.href)
    await tab.page.waitForURL(`${server.url}/`)
  }
  await tab.close()
})

test('a tab of before an update is told so by what it asks for', async () => {
  const tab = await Tab.open(browser, server)
  const said = await tab.page.evaluate(async () => {
    const part = await fetch('/ui/000000000000000000000000/chunks/part.js')
    return [part.status, (await part.json()).hint]
  })
  assert.deepEqual(said, [404, 'load the page again'])
  await tab.close()
})
