// Orders to many runs, over real runs.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { done, failed, failedRun, repairRetail, State, until } from './state.mjs'

let state, server, browser
const failures = []
const days = 33 // more than a page of the list has

const daysScript = `
nodes:
  read: {type: file_table, r: {urls: [day.csv], columns: {n: int}}, w: day}
  write: {type: table_file, r: day, w: "day-{day}.csv"}
`

before(async () => {
  state = new State()
  failures.push(await failedRun(state))
  for (let i = 0; i < 2; i++) failures.push(await state.run('retail.yaml', failed))
  state.write('day.csv', 'n\n1\n')
  const values = Array.from({ length: days }, (_, i) => i + 1).join(',')
  await state.thalweg(['run', state.write('days.yaml', daysScript), '--matrix', `day=${values}`, '--memory', '1GB'])
  await state.run('days.yaml', done, '--param', 'day=1', '--workspace', 'other')
  const config = `version: 1
workspaces:
  main: {scripts: ., parameters: true}
  other: {scripts: ., parameters: true}
limits: {user_requests_per_second: 10000, user_requests_burst: 10000, address_requests_per_second: 10000, address_requests_burst: 10000}
`
  state.write('yearly.yaml', `schedule: {cron: '0 5 1 1 *', name: yearly}\n${daysScript.replaceAll('{day}', 'y')}`)
  server = await Server.start(state, { config, flags: ['--worker', '--scheduler'] })
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

// counted counts clicks on a page.
async function counted(page) {
  await page.evaluate(() => {
    window.clicks = 0
    addEventListener('click', () => window.clicks++, true)
  })
  return () => page.evaluate(() => window.clicks)
}

test('one workspace that fails does not blank the others', async () => {
  const tab = await Tab.open(browser, server, '/w/main')
  const { page } = tab
  let away = true
  let asked // requests that wait: no look of the page's own may come before the click
  await page.route('**/v1/workspaces/other/needs', (route) => {
    if (asked) return asked.push(route)
    if (!away) return route.continue()
    return route.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      body: '{"detail":"the state is away"}',
    })
  })
  await page.getByRole('link', { name: 'Thalweg' }).click()
  await page.getByRole('alert').filter({ hasText: 'Not all of other can be shown: the state is away' }).waitFor()
  await page.getByText('3 things need you').waitFor()
  await tab.accessible()
  asked = []
  await page.getByRole('button', { name: 'Try again' }).click()
  away = false
  const waiting = asked
  asked = undefined
  for (const route of waiting) await route.continue()
  await page.getByRole('alert').waitFor({ state: 'detached' })
  await tab.close()
})

test('all that match a filter are meant, not those of the first page', async () => {
  const tab = await Tab.open(browser, server, '/w/main?script=days')
  const { page } = tab
  await page.getByLabel('All runs of this page').check()
  await page.getByText('30 runs chosen').waitFor()
  await page.getByRole('button', { name: 'Choose all that match the filter' }).click()
  await page.getByText('All runs that match the filter chosen').waitFor()
  await page.reload() // the address holds the choice
  await page.getByText('All runs that match the filter chosen').waitFor()
  await page.getByRole('button', { name: 'Invalidate…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('heading', { name: `Invalidate ${days} runs` }).waitFor()
  const give = dialog.getByRole('button', { name: `Invalidate ${days} runs` })
  assert.equal(await give.isDisabled(), true) // without a reason
  await dialog.getByRole('checkbox').first().uncheck()
  await dialog.getByText('The same from a terminal').click()
  assert.equal((await dialog.locator('pre').textContent()).split('\n').length, days - 1)
  for (const dark of [false, true])
    for (const width of [1280, 360]) {
      await tab.screenshot('bulk-dialog', { dark, width, full: false })
      await tab.accessible('[role="dialog"]')
    }
  await dialog.getByLabel('Why').fill('a test')
  await dialog.getByRole('button', { name: `Invalidate ${days - 1} runs` }).click()
  await dialog.getByText(`${days - 1} orders given.`).waitFor()
  assert.equal(await dialog.getByRole('row').filter({ hasText: 'invalidated' }).count(), days - 1)
  await tab.close()
  const { runs } = await server.request('GET', '/v1/workspaces/main/runs?script=days&limit=100')
  assert.equal(runs.filter((r) => r.invalidated).length, days - 1)
})

test('runs are dropped by who may, with the words typed', async () => {
  const grants = [{ workspace: 'main', role: 'operator' }]
  const operator = await Tab.open(browser, server, '/w/main?script=days', {
    as: await server.user('olga', ...grants),
  })
  await operator.page.getByLabel('Run 20', { exact: true }).check()
  await operator.page.getByRole('button', { name: 'Retry…' }).waitFor()
  assert.equal(await operator.page.getByRole('button', { name: 'Drop…' }).count(), 0)
  await operator.close()
  const viewer = await Tab.open(browser, server, '/w/main?script=days', {
    as: await server.user('vera', { workspace: 'main', role: 'viewer' }),
  })
  await viewer.page.getByRole('link', { name: 'days #20' }).waitFor()
  assert.equal(await viewer.page.getByRole('checkbox').count(), 0)
  await viewer.close()

  const tab = await Tab.open(browser, server, '/w/main?script=days')
  const { page } = tab
  // by keyboard alone
  await page.getByLabel('Run 20', { exact: true }).focus()
  await page.keyboard.press('Space')
  await page.getByLabel('Run 21', { exact: true }).focus()
  await page.keyboard.press('Space')
  await page.getByText('2 runs chosen').waitFor()
  await page.getByRole('button', { name: 'Drop…' }).focus()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog')
  const words = dialog.getByLabel('Write “drop 2 runs” to go on')
  await words.waitFor()
  await dialog.getByLabel('Why').focus()
  await page.keyboard.type('old')
  await page.keyboard.press('Tab')
  await page.keyboard.type('drop 2 run')
  await page.keyboard.press('Enter')
  assert.equal(await dialog.getByRole('button', { name: 'Drop 2 runs' }).isDisabled(), true)
  await page.keyboard.type('s')
  await page.keyboard.press('Enter')
  await dialog.getByText('2 orders given.').waitFor()
  await page.keyboard.press('Escape')
  await page.getByLabel('Run 20', { exact: true }).waitFor({ state: 'detached' })
  await tab.close()
})

test('an order to a run that does not take it is refused beside those that do', async () => {
  const tab = await Tab.open(browser, server, `/w/main?pick=${failures[0]},7`)
  const { page } = tab
  await page.getByRole('button', { name: 'Resume…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('refused:').waitFor()
  await dialog.getByRole('button', { name: 'Resume 1 run' }).click()
  // the record is still wrong: it fails again, which is heard
  await dialog.getByText('1 order given.').waitFor()
  await dialog
    .getByRole('row', { name: `retail #${failures[0]}` })
    .getByText('failed')
    .last()
    .waitFor()
  await tab.close()
})

test("the morning's failures are retried in three clicks", async () => {
  repairRetail(state)
  const tab = await Tab.open(browser, server)
  const { page } = tab
  await page.getByText('3 things need you').waitFor()
  for (const dark of [false, true])
    for (const width of [1280, 360]) await tab.screenshot('now-failures', { dark, width })
  await tab.accessible()
  await tab.fits()
  const clicks = await counted(page)
  await page.getByRole('button', { name: 'Retry all 3 failures…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('a new run, because of input').first().waitFor()
  await dialog.getByRole('button', { name: 'Retry 3 runs' }).click()
  assert.ok((await clicks()) <= 3)
  await dialog.getByText('3 orders given.').waitFor()
  for (let i = 0; i < 3; i++) await dialog.getByRole('row').filter({ hasText: 'complete' }).nth(i).waitFor() // is heard
  await dialog.getByRole('button', { name: 'Close' }).click()
  await page.getByText('Nothing needs you').waitFor()
  await tab.close()
})

test('a run is invalidated from the matrix', async () => {
  const tab = await Tab.open(browser, server, '/w/main?tab=matrix&script=retail&status=complete')
  const { page } = tab
  const column = page.getByRole('columnheader').filter({ hasText: 'retail #' }).first()
  for (const dark of [false, true])
    for (const width of [1280, 360]) await tab.screenshot('matrix-orders', { dark, width })
  await tab.accessible()
  await column.getByRole('button', { name: 'Invalidate…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('2 nodes').waitFor()
  await dialog.getByLabel('Why').fill('wrong file')
  await dialog.getByRole('button', { name: 'Invalidate', exact: true }).click()
  await dialog.waitFor({ state: 'detached' })
  await tab.close()
})

test('a run that is named by other than its number is that number from then on', async () => {
  const tab = await Tab.open(browser, server, '/w/other/runs/last')
  const { page } = tab
  await page.waitForURL(`${server.url}/w/other/runs/1`)
  await page.goto(`${server.url}/w/other/tables/day?sort=n`)
  await page.waitForURL(`${server.url}/w/other/tables/day?sort=n&run=1`)
  await page.getByRole('link', { name: 'Where rows come from' }).waitFor()
  assert.equal(await page.locator('a[href*="NaN"], a[href*="latest"]').count(), 0)
  await page.goto(`${server.url}/w/other/tables/day?run=last~9`)
  await page.getByRole('alert').getByText('there is no last~9').waitFor()
  await tab.close()
})

test('what is started is what is shown', async () => {
  const tab = await Tab.open(browser, server, '/w/other/start?script=days.yaml&params=day%3D1')
  const { page } = tab
  const start = page.getByRole('button', { name: 'Start days' })
  await page.getByText('all nodes are taken over').waitFor()
  let answer
  const answers = new Promise((resolve) => {
    answer = resolve
  })
  await page.route('**/v1/workspaces/other/runs', async (route) => {
    await answers
    await route.continue()
  })
  await page.getByRole('checkbox', { name: /Fresh/ }).check()
  assert.equal(await start.isDisabled(), true) // at once: the plan is of another form
  await page.keyboard.press('Enter')
  answer()
  await page.getByText('2 nodes are computed').waitFor()
  await start.focus()
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/runs\/2$/)
  await page.goto(`${server.url}/w/other/start`)
  await page.getByRole('heading', { name: 'Start days' }).waitFor() // the last one is remembered
  await tab.close()
})

test('a schedule is paused in three clicks from Now, and goes on by keyboard alone', async () => {
  await until(async () => (await server.request('GET', '/v1/workspaces/main/schedules')).length)
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const other = await Tab.open(browser, server, '/w/main?tab=schedules')
  const there = other.page.getByRole('row', { name: 'yearly' })
  await there.getByText('works').waitFor()
  await other.page.getByRole('banner').getByRole('status').getByText('Live').waitFor()
  const heard = (text) => there.getByText(text, { exact: true }).waitFor({ timeout: 10_000 }) // by itself it looks every 30 s
  const clicks = await counted(page)
  await page.getByRole('link', { name: 'Schedules of main' }).click()
  const row = page.getByRole('row', { name: 'yearly' })
  await row.getByRole('button', { name: 'Pause…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('The next ones that pass:').waitFor()
  for (const width of [1280, 360]) await tab.screenshot('schedule-pause', { width, full: false })
  await tab.accessible('[role="dialog"]')
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click()
  assert.ok((await clicks()) <= 3)
  await row.getByText('paused', { exact: true }).waitFor()
  await heard('paused')
  for (const width of [1280, 360])
    for (const dark of [false, true]) await tab.screenshot('schedules-paused', { width, dark })
  await tab.accessible()
  await tab.fits()
  await row.getByRole('button', { name: 'Resume…' }).focus()
  await page.keyboard.press('Enter')
  await dialog.getByText('The next runs:').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await row.getByText('works').waitFor()
  await heard('works')
  await other.close()
  await page.goto(`${server.url}/w/main?tab=audit`)
  const order = (did) => page.getByRole('row', { name: `${did} schedule yearly` })
  await order('pause').waitFor()
  await order('resume').waitFor()
  await tab.fits()
  await tab.screenshot('audit-schedules', { width: 1280 })
  await tab.close()
})

test('a watch that cannot look at its files is paused on Now', async () => {
  const files = 'sftp://me@127.0.0.1:1/in/*.csv'
  const script = daysScript.replaceAll('{day}', 'w').replace('day.csv', '{watched_file}')
  state.write('inbox.yaml', `watch: {files: '${files}', name: inbox}\n${script}`)
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const need = page
    .getByRole('listitem')
    .filter({ hasText: 'watch inbox cannot look at its files' })
    .filter({ hasText: 'main ·' })
  await until(async () => (await server.request('GET', '/v1/workspaces/main/needs')).needs.some((n) => n.schedule))
  await page.reload()
  await need.waitFor()
  assert.equal((await need.textContent()).split('127.0.0.1').length, 2) // the address is said once
  for (const width of [1280, 360]) for (const dark of [false, true]) await tab.screenshot('now-watch', { width, dark })
  await tab.accessible()
  await tab.fits()
  await need.getByRole('button', { name: 'Pause…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('Files that come wait').waitFor()
  await dialog.getByRole('button', { name: 'Pause', exact: true }).click()
  await until(async () =>
    (await server.request('GET', '/v1/workspaces/main/schedules')).some((s) => s.name === 'inbox' && s.paused),
  )
  await page.getByText('Nothing runs.').click() // a list that has the focus keeps its rows
  await need.waitFor({ state: 'detached' })
  await tab.close()
})
