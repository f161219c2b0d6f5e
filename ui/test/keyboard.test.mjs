// What people do on the pages, by keyboard alone: nothing here points or clicks.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { failedRun, finishedRun, repairRetail, State, waitingRuns, waits } from './state.mjs'

const stepsMax = 80 // of the Tab key, to come to anything

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

// reach presses Tab until what it looks for has the focus, which must be seen. A button may be disabled until its
// dry run is there: it is waited for, without a click.
async function reach(page, locator) {
  await locator.waitFor()
  await page.waitForFunction((e) => !e.disabled, await locator.elementHandle())
  for (let i = 0; i < stepsMax; i++) {
    await page.keyboard.press('Tab')
    if (await locator.evaluate((e) => e === document.activeElement)) {
      assert.ok(await locator.evaluate((e) => e.matches(':focus-visible')), 'the focus is seen')
      return
    }
  }
  assert.fail(`${locator} is not reached by ${stepsMax} steps`)
}

async function press(page, locator, key = 'Enter') {
  await reach(page, locator)
  await page.keyboard.press(key)
}

test('rows are sorted, filtered and taken along', async () => {
  const tab = await Tab.open(browser, server, `/w/main/tables/sales?run=${complete}`)
  const { page } = tab
  const rows = page.getByRole('region', { name: 'Rows' }).getByRole('row')
  await reach(page, page.getByRole('link', { name: 'CSV', exact: true }))
  const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')])
  assert.equal(await file.failure(), null)
  await page.reload()
  await reach(page, page.getByLabel('Only rows where'))
  await page.keyboard.type('id >= 1007')
  await page.keyboard.press('Enter')
  await press(page, page.getByRole('button', { name: 'id', exact: true }))
  await page.getByRole('button', { name: 'id ↑' }).waitFor()
  await rows.nth(1).getByText('1007').waitFor()
  await tab.close()
})

test('a query is asked, and rows are followed to their files', async () => {
  const tab = await Tab.open(browser, server, '/w/main/sql')
  const { page } = tab
  await reach(page, page.getByLabel('One query that only reads'))
  await page.keyboard.type('SELECT count(*) AS n FROM sales')
  await page.keyboard.press('Control+Enter')
  await page.getByRole('cell', { name: '1200', exact: true }).waitFor()
  await page.goto(`${server.url}/w/main/trace?run=${complete}`)
  await reach(page, page.getByLabel('Table or output file'))
  await page.keyboard.type('sales')
  await reach(page, page.getByLabel('Rows for which'))
  await page.keyboard.type('id = 1007')
  await page.keyboard.press('Enter')
  const first = page.getByRole('treeitem').first()
  await page.getByRole('treeitem').nth(1).waitFor()
  await reach(page, first)
  await page.keyboard.press('End')
  assert.ok(await first.evaluate((e) => e !== document.activeElement && document.activeElement.role === 'treeitem'))
  await tab.close()
})

test('two runs are compared', async () => {
  const tab = await Tab.open(browser, server, `/w/main/diff?table=prices&a=${approved}&b=${waiting}`)
  const { page } = tab
  await reach(page, page.getByLabel('Table'))
  await press(page, page.getByRole('button', { name: 'Compare' }))
  await page.getByRole('region', { name: 'Counts' }).waitFor()
  await tab.close()
})

test('a run is stopped', async () => {
  const run = await state.run(`${state.dir}/prices.yaml`, waits)
  const tab = await Tab.open(browser, server, `/w/main/runs/${run}`)
  const { page } = tab
  const dialog = page.getByRole('dialog')
  await press(page, page.getByRole('button', { name: 'Stop…' }))
  await dialog.getByText('batches are under way').waitFor()
  await reach(page, dialog.getByRole('textbox').first())
  await page.keyboard.type('of the wrong day')
  await press(page, dialog.getByRole('button', { name: 'Stop', exact: true }))
  await page.getByRole('button', { name: 'Resume…' }).waitFor()
  await tab.close()
})

test('a failure is taken, and retried once its input is right', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const entry = page.getByRole('listitem').filter({ hasText: `retail #${failed}` })
  const dialog = page.getByRole('dialog')
  await press(page, entry.getByRole('button', { name: 'Take…' }))
  await reach(page, dialog.getByRole('textbox'))
  await page.keyboard.type('the shop sends it again')
  await press(page, dialog.getByRole('button', { name: 'Take', exact: true }))
  await dialog.waitFor({ state: 'detached' })
  await entry.getByText('the shop sends it again').waitFor()
  repairRetail(state)
  await press(page, entry.getByRole('link', { name: 'is not a decimal2' }))
  await press(page, page.getByRole('button', { name: 'Retry…' }))
  await dialog.getByText('A new run begins, because').waitFor()
  await press(page, dialog.getByRole('button', { name: 'Retry', exact: true }))
  await page.getByText('Complete:').waitFor()
  await tab.close()
})

test('a gate is decided with an answer', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  await press(page, page.getByRole('link', { name: 'Are the prices right?' }))
  await page.getByText('failing row').first().waitFor()
  await reach(page, page.getByLabel('Least price'))
  await page.keyboard.press('Control+a')
  await page.keyboard.type('20')
  await reach(page, page.getByLabel('Comment'))
  await page.keyboard.type('as agreed')
  await press(page, page.getByRole('button', { name: /^Approve [0-9a-f]{6}$/ }))
  await page.locator('.said').getByText('approved').first().waitFor()
  await page.goto(`${server.url}/w/main/runs/${waiting}`)
  await page.getByText('Complete:').waitFor()
  await tab.close()
})

test('tabs, a column of the matrix, and what is asked of it', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  const { page } = tab
  await reach(page, page.getByRole('tab', { selected: true }))
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('Enter')
  await page.waitForURL(/tab=matrix/)
  const column = page.getByRole('columnheader').filter({ hasText: `orders #${complete}` })
  await press(page, column.getByRole('button', { name: 'Invalidate…' }))
  const dialog = page.getByRole('dialog')
  await dialog.getByText('3 nodes').waitFor()
  await reach(page, dialog.getByLabel('Why'))
  await page.keyboard.type('wrong file')
  await press(page, dialog.getByRole('button', { name: 'Invalidate', exact: true }))
  await dialog.waitFor({ state: 'detached' })
  await page.goto(`${server.url}/w/main/runs/${complete}`)
  await page.getByText('wrong file').first().waitFor()
  await tab.close()
})

test('a script is started', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  const { page } = tab
  await press(page, page.getByRole('link', { name: 'Start a script' }))
  await press(
    page,
    page
      .getByRole('main')
      .getByRole('link', { name: /^orders/ })
      .first(),
  )
  await page
    .getByText(/nodes? (is|are) computed|taken over/)
    .first()
    .waitFor()
  await press(page, page.getByRole('button', { name: 'Start orders' }))
  await page.waitForURL(/runs\/\d+$/)
  await tab.close()
})
