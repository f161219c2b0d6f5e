// The picture of a run of many nodes, and what comes between a view and its stream.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { deepRun, finishedRun, State } from './state.mjs'

const nodes = 200
let state, server, browser, deep, small

before(async () => {
  state = new State()
  deep = await deepRun(state, nodes)
  small = await finishedRun(state)
  server = await Server.start(state, { flags: [] })
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('a large picture is folded, and unfolds by key, search and tag', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${deep}`)
  const picture = tab.page.getByRole('group', { name: 'The nodes of the run and what they read' })
  const groups = picture.getByRole('button', { name: / nodes / })
  await groups.first().waitFor()
  assert.equal(await groups.count(), 2) // without the tag, and with it
  await picture.getByRole('link', { name: 'node0' }).first().waitFor()
  assert.ok((await picture.getByRole('link').count()) < 10)
  await tab.accessible()
  await tab.screenshot('run-large')
  await tab.screenshot('run-large', { dark: true })
  await tab.page.getByRole('searchbox', { name: 'Find' }).first().fill('node77')
  await picture.getByRole('link', { name: 'node77' }).waitFor()
  await tab.page.getByRole('searchbox', { name: 'Find' }).first().fill('')
  await tab.page.getByLabel('Tag').selectOption('late')
  await tab.page
    .getByText(`${nodes / 2 - 1} nodes`, { exact: true })
    .first()
    .waitFor()
  assert.match(tab.page.url(), /tag=late/)
  await tab.page.getByLabel('Tag').selectOption('')
  const before = await picture.getByRole('link').count()
  await groups.first().focus()
  await tab.page.keyboard.press('Enter')
  await tab.page.getByRole('button', { name: 'Fold', exact: true }).waitFor()
  assert.ok((await picture.getByRole('link').count()) > before)
  const width = () => picture.locator('svg').first().getAttribute('width')
  const wide = Number(await width())
  await picture.focus()
  await tab.page.keyboard.press('-')
  await tab.page.waitForFunction((w) => Number(document.querySelector('.frame svg').getAttribute('width')) < w, wide)
  await tab.close()
})

test('on a phone it is its list', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${deep}`, { width: 360 })
  const group = tab.page.getByRole('listitem').getByRole('button', { name: /nodes/ })
  await group.first().waitFor()
  const before = await tab.page.getByRole('listitem').count()
  await tab.screenshot('run-large', { dark: true })
  await group.first().click()
  await tab.page.getByRole('listitem').getByRole('link', { name: 'node50', exact: false }).first().waitFor()
  assert.ok((await tab.page.getByRole('listitem').count()) > before)
  await tab.accessible()
  await tab.fits()
  await tab.close()
})

test('colours, legend and static copies', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${small}`)
  await tab.page.getByText('by hand or approval').waitFor()
  await tab.page.getByLabel('Colours').selectOption('root')
  await tab.page.locator('.frame .root1').first().waitFor()
  await tab.screenshot('run-roots')
  await tab.accessible()
  for (const [name, has] of [
    ['plain', 'class="step"'],
    ['by root', 'root1'],
    ['by status', 'class="step done"'],
  ]) {
    const href = await tab.page.getByRole('link', { name, exact: true }).getAttribute('href')
    const text = await tab.page.evaluate(async (at) => (await fetch(at)).text(), href)
    assert.ok(text.includes(has), `${href} has ${has}`)
  }
  await tab.close()
})

test('what happens between the view and its stream is seen, and nothing of the past is told again', async () => {
  const tab = await Tab.open(browser, server, '/')
  let told
  let open
  const held = new Promise((go) => {
    open = go
  })
  const asked = new Promise((go) => {
    told = go
  })
  await tab.context.route(/\/v1\/stream\?.*runs|\/v1\/stream\?.*%2F/, async (route) => {
    told(route.request().url())
    await held
    await route.continue()
  })
  await tab.page.goto(`${server.url}/w/main/runs/${small}`)
  await tab.page.getByText(/^Complete:/).waitFor()
  assert.match(await asked, /from=end/)
  await server.request('POST', `/v1/workspaces/main/runs/${small}/orders`, { kind: 'invalidate', reason: 'between' })
  assert.equal(await tab.page.getByText('invalidated').count(), 0)
  open()
  await tab.page.getByText('invalidated').first().waitFor()
  await tab.close()
})
