// What people do on the pages, by keyboard alone: nothing here points or clicks.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { failedRun, finishedRun, repairRetail, State, waitingRuns } from './state.mjs'

const stepsMax = 80 // of the Tab key, to come to anything

let state, server, browser, complete, failed, waiting

before(async () => {
  state = new State()
  complete = await finishedRun(state)
  failed = await failedRun(state)
  ;({ waiting } = await waitingRuns(state))
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

// reach presses Tab until what it looks for has the focus, which must be seen.
async function reach(page, locator) {
  await locator.waitFor()
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
  await page.getByText('approved').first().waitFor()
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
