// What people do on the pages, over real runs.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { failedRun, finishedRun, repairRetail, State, waitingRuns } from './state.mjs'

let state, server, browser, complete, failed, approved, waiting

before(async () => {
  state = new State()
  complete = await finishedRun(state)
  failed = await failedRun(state)
  ;({ approved, waiting } = await waitingRuns(state))
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

// pages has an address for each page, and what it shows when it is there.
const pages = () => [
  ['now', '/', '2 things need you'],
  ['workspace', '/w/main', 'orders #1'],
  ['matrix', '/w/main?tab=matrix', 'retail #2'],
  ['diagram', '/w/main?tab=diagram&script=retail', 'This is the latest run that the filter selects'],
  ['schedules', '/w/main?tab=schedules', 'No script has a schedule'],
  ['audit', '/w/main?tab=audit', 'as last month'],
  ['run', `/w/main/runs/${failed}`, 'nothing is lost'],
  ['run-complete', `/w/main/runs/${complete}`, 'Complete:'],
  ['node', `/w/main/runs/${failed}/nodes/read`, 'is not a decimal2'],
  ['checks', `/w/main/runs/${complete}/nodes/read?tab=checks`, 'unique'],
  ['gate', `/w/main/gates/${waiting}/prices`, 'Your decision'],
  ['gate-decided', `/w/main/gates/${approved}/prices`, 'as last month'],
  ['table', `/w/main/tables/sales?run=${complete}&column=shop`, 'zero'],
]

test('each page is accessible, and fits a phone', async () => {
  for (const width of [1280, 360]) {
    const tab = await Tab.open(browser, server, '/', { width })
    for (const [name, path, shows] of pages()) {
      await tab.page.goto(server.url + path)
      await tab.page.getByText(shows).first().waitFor()
      for (const dark of [false, true]) {
        await tab.screenshot(name, { dark, width })
        await tab.accessible()
      }
      await tab.fits()
    }
    await tab.close()
  }
})

test('a failure is seen, understood and repaired', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const entry = page.getByRole('listitem').filter({ hasText: `retail #${failed}` })
  await entry.getByText('"12;5" is not a decimal2').waitFor()
  await entry.getByRole('link', { name: 'is not a decimal2' }).click()
  await page.getByText('retail_2.csv:203').first().waitFor()
  await page.getByRole('button', { name: 'Retry this batch' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('row', { name: 'read' }).waitFor()
  await tab.accessible('[role="dialog"]')
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  repairRetail(state)
  await page.getByRole('button', { name: 'Resume…' }).click()
  await dialog.getByRole('alert').getByText('the input file changed').waitFor()
  assert.ok(await dialog.getByRole('button', { name: 'Resume', exact: true }).isDisabled())
  await page.keyboard.press('Escape')
  await dialog.waitFor({ state: 'detached' })
  // What is named cannot be done alone any more: the order is that of the run.
  await page.getByRole('button', { name: 'Retry this batch' }).click()
  await dialog.getByText('An input file has changed').waitFor()
  await dialog.getByText('A new run begins, because').waitFor()
  await tab.accessible('[role="dialog"]')
  await tab.screenshot('retry-instead', { full: false })
  await dialog.getByRole('button', { name: 'Retry', exact: true }).click()
  await page.getByText('Complete:').waitFor()
  await page.getByRole('link', { name: 'Thalweg' }).click()
  await page.getByText('1 thing needs you').waitFor()
  await tab.close()
})

test('a gate is decided for what is on the screen, with an answer', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  await page.getByRole('link', { name: 'Are the prices right?' }).click()
  await page.getByText('failing row').first().waitFor()
  const least = page.getByLabel('Least price')
  await least.fill('1000')
  await page.getByLabel('Comment').fill('as agreed')
  await page.getByRole('button', { name: /^Approve [0-9a-f]{6}$/ }).click()
  await page.getByRole('alert').waitFor() // 1000 is more than the gate takes
  await least.fill('20')
  await page.getByRole('button', { name: /^Approve/ }).click()
  await page.locator('.said').getByText('approved').first().waitFor()
  await page.getByText('as agreed').waitFor()
  await page.getByText('20.00').first().waitFor()
  await page.goto(`${server.url}/w/main/runs/${waiting}`)
  await page.getByText('Complete:').waitFor()
  await tab.close()
})

test('rows are seen as they are, sorted, filtered and turned', async () => {
  const tab = await Tab.open(browser, server, `/w/main/tables/sales?run=${complete}`)
  const { page } = tab
  const rows = page.getByRole('region', { name: 'Rows' }).getByRole('row')
  await page.getByText('rows 1 to 100 of 1,200 rows').waitFor()
  await page.getByText('NULL', { exact: true }).last().waitFor()
  await page.getByText('U+200B').first().waitFor()
  await page.getByRole('button', { name: 'id', exact: true }).click()
  await page.getByRole('button', { name: 'id ↑' }).click()
  await page.getByRole('button', { name: 'id ↓' }).waitFor()
  await rows.nth(1).getByText('3399').waitFor()
  await page.getByLabel('Only rows where').fill('id = 1007')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.getByText('rows 1 to 1').waitFor()
  await page.reload() // the address holds all of it
  await rows.nth(1).getByText('1007').waitFor()
  await page.getByLabel('Only rows where').fill('nonsense =')
  await page.keyboard.press('Enter')
  await page.getByRole('alert').waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'CSV', exact: true }).click(),
  ])
  assert.equal(await download.failure(), null)
  await tab.close()
})

test('who waits for a job sees how far it is', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  let now = { phase: 'following the rows of node <b>read', done: 1, of: 3, unit: 'nodes' }
  await page.route('**/v1/jobs/*', async (route) => {
    if (!now || route.request().method() !== 'GET') return route.continue()
    const answer = await route.fetch()
    const { result: _, ended: __, ...job } = await answer.json()
    await route.fulfill({ response: answer, json: { ...job, status: 'running', progress: now } })
  })
  await page.goto(`${server.url}/w/main/trace?table=sales&run=${complete}`)
  const waits = page.getByRole('status').filter({ hasText: 'Following the rows of node <b>read …' })
  await waits.getByText('1 of 3 nodes').waitFor()
  const bar = page.getByRole('progressbar', { name: 'Following the rows of node <b>read' })
  assert.equal(await bar.evaluate((b) => b.position), 1 / 3)
  for (const width of [1280, 360])
    for (const dark of [false, true]) {
      await page.setViewportSize({ width, height: 800 })
      await tab.screenshot('job', { dark, width })
      await tab.accessible()
      await tab.fits()
    }
  now = { phase: 'waiting for memory' }
  await page.getByText('Waiting for memory …').waitFor()
  assert.equal(await bar.count(), 0, 'what cannot be counted has no bar')
  now = undefined
  await page.getByRole('status').filter({ hasText: 'Waiting for memory' }).waitFor({ state: 'detached' })
  await page.getByRole('tree').waitFor()
  await tab.close()
})

test('everything is found by the keyboard alone', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  await page.getByRole('heading', { level: 1 }).waitFor()
  await page.keyboard.press('Control+k')
  await page.keyboard.type(`#${complete}`)
  await page.getByRole('option', { name: `orders #${complete}` }).waitFor()
  await tab.accessible('[role="dialog"]')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: `orders #${complete}` }).waitFor()
  await page.keyboard.press('o')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.keyboard.press('g')
  await page.keyboard.press('n')
  await page.waitForURL(`${server.url}/`)
  await tab.close()
})
