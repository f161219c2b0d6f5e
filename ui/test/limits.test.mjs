// What a run may take and has cost: where it is started, on its page, and where it is resumed.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { environment, finishedRun, State, waits } from './state.mjs'

let state, server, browser, complete, paused

before(async () => {
  state = new State()
  complete = await finishedRun(state)
  state.write('ids.csv', 'id\n1\n2\n')
  state.write(
    'limited.yaml',
    `name: limited
nodes:
  read: {type: file_table, r: {urls: [ids.csv], columns: {id: int}}, w: ids}
  again: {type: table_table, r: ids, w: {name: more, fields: [r.id]}}
  write: {type: table_file, r: more, w: limited.csv}
`,
  )
  paused = await state.run('limited.yaml', waits, '--max-elapsed', '1ms')
  environment.THALWEG_MACHINE = 'c7g.large' // the machine of the server's worker
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('without a price a run has times and no money', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${complete}`)
  const { page } = tab
  await page.getByText('What it cost').click()
  const row = page.getByRole('row', { name: 'In all' })
  await row.waitFor()
  await page.getByText("type of a worker's machine is not known").waitFor()
  assert.equal(await page.getByRole('row', { name: 'Price' }).count(), 0)
  assert.equal(await page.getByRole('columnheader', { name: 'price' }).count(), 0)
  assert.equal(await page.getByRole('region', { name: 'What it may take' }).count(), 0)
  await tab.close()
})

test('a run that has reached its limit says so, and is resumed with a higher one', async () => {
  for (const width of [1280, 360]) {
    const tab = await Tab.open(browser, server, `/w/main/runs/${paused}`, { width })
    await tab.page.getByText('Paused, because it has reached its limit of time: it has taken').waitFor()
    await tab.page.getByText('What it cost').click()
    await tab.page.getByRole('row', { name: 'In all' }).waitFor()
    for (const dark of [false, true]) {
      await tab.screenshot('run-limit', { dark, width })
      await tab.accessible()
    }
    await tab.fits()
    await tab.close()
  }
  const tab = await Tab.open(browser, server, `/w/main/runs/${paused}`)
  const { page } = tab
  const limits = page.getByRole('region', { name: 'What it may take' })
  await limits.getByText(/of 1 ms, reached/).waitFor()
  await limits.getByRole('progressbar', { name: /^Time: .* of 1 ms$/ }).waitFor()
  await page.getByRole('button', { name: 'Resume…' }).click()
  const dialog = page.getByRole('dialog')
  const give = dialog.getByRole('button', { name: 'Resume', exact: true })
  await dialog.getByText('It has reached its limit of time').waitFor()
  await dialog.getByText(/not done/).waitFor()
  assert.ok(await give.isDisabled(), 'it wants a limit')
  await tab.accessible('[role="dialog"]')
  await tab.screenshot('resume-limit', { full: false })
  const most = dialog.getByLabel('May take in all')
  for (const [text, said] of [
    ['5 minutes', '"5 minutes" is no time that a run may take'],
    ['2ms', 'has reached its limit'],
  ]) {
    await most.fill(text)
    await give.click()
    await dialog.getByRole('alert').getByText(said).waitFor()
  }
  await most.fill('1h')
  await dialog.getByText(`thalweg resume ${paused} --max-elapsed 1h`).waitFor()
  await give.click()
  await page.getByText('Complete:').waitFor()
  await limits.getByText(/of 1 h, less than 1 %/).waitFor()
  await tab.close()
})

test('a start says what the run may take, and is refused if that is too little', async () => {
  const tab = await Tab.open(browser, server, '/w/main/start?script=limited.yaml&fresh=1')
  const { page } = tab
  const start = page.getByRole('button', { name: 'Start limited' })
  const time = page.getByLabel('May take')
  await time.fill('soon')
  await page.getByRole('alert').getByText('"soon" is no time that a run may take').waitFor()
  assert.ok(await start.isDisabled())
  await time.fill('1ms')
  await page.getByText('It would not be begun with this limit.').waitFor()
  await page
    .getByRole('alert')
    .getByText(/At least expected are .* of 1 ms, by 1 earlier run/)
    .waitFor()
  assert.ok(await start.isDisabled())
  await tab.screenshot('start-limit', {})
  await tab.accessible()
  await time.fill('1h')
  await page.getByLabel('May cost').fill('900')
  await page.getByText('--max-elapsed 1h --max-cost 900').waitFor()
  await page.getByText('It would not be begun').waitFor({ state: 'detached' })
  await start.click()
  await page.getByText('Complete:').waitFor()
  const limits = page.getByRole('region', { name: 'What it may take' })
  await limits.getByText(/^\$0\.\d+ of \$900\.00$/).waitFor()
  await limits.getByText(/of 1 h$/).waitFor()
  await page.getByText('What it cost').click()
  await page.getByRole('row', { name: /^Price .*\$/ }).waitFor()
  await page.getByText(/Prices of 20\d\d-\d\d/).waitFor()
  await page
    .getByRole('row', { name: /^again / })
    .getByText('$')
    .waitFor()
  await tab.screenshot('run-cost', {})
  await tab.accessible()
  await tab.close()
})
