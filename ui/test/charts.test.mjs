// Charts of what a run and its workers did over time, and what it cost.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { finishedRun, State } from './state.mjs'

const slowScript = `
nodes:
  read:
    type: file_table
    r: {urls: [in.csv], columns: {id: int}}
    w: numbers
  wait:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    r: numbers
    p:
      python_code_urls: [wait.py]
      calculated_fields:
        waited: {expression: wait(r.id), type: int}
    w: {name: waited, fields: {waited: {expression: p.waited, type: int}}}
`

let state, server, browser, quick, slow

before(async () => {
  state = new State()
  quick = await finishedRun(state)
  state.write('in.csv', 'id\n1\n')
  state.write('wait.py', 'import time\n\n\ndef wait(n: int) -> int:\n    time.sleep(12)\n    return n\n')
  slow = await state.run(state.write('slow.yaml', slowScript)) // longer than the time between samples
  server = await Server.start(state)
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

const charts = [
  'Batches at work',
  'Rows a second',
  'Processors in use',
  'Memory',
  'Free on the disk',
  'Read from and written to disks, a second',
]

test('what was done and used over time is drawn, and is in tables', async () => {
  for (const width of [1280, 360]) {
    const tab = await Tab.open(browser, server, `/w/main/runs/${slow}/timeline`, { width })
    const { page } = tab
    for (const name of charts) await page.getByRole('figure', { name }).locator('canvas').waitFor()
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      await tab.screenshot('timeline-charts', { dark, width })
      await tab.accessible()
    }
    await tab.fits()
    await tab.close()
  }
})

test('with forced colours a chart still has its own', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${slow}/timeline`, { forcedColors: 'active' })
  const { page } = tab
  await page.getByRole('figure', { name: 'Memory' }).locator('canvas').waitFor()
  const tones = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[data-tone]')].map((e) => [e.dataset.tone, getComputedStyle(e).color]),
    ),
  )
  const colours = ['done', 'busy', 'failed', 'accent', 'sheet'].map((tone) => tones[tone])
  assert.equal(new Set(colours).size, colours.length, JSON.stringify(tones))
  assert.equal(tones.ground, tones.sheet)
  await tab.close()
})

test('the charts lie below the lanes, have the same stretch of time, and each has a table', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${slow}/timeline`)
  const { page } = tab
  const chart = (name) => page.getByRole('figure', { name })
  for (const name of charts) {
    const it = chart(name)
    await it.getByText('The same as a table').click()
    await it.getByRole('row').nth(1).waitFor()
  }
  const used = chart('Memory').getByRole('cell').filter({ hasText: 'MiB' })
  await used.nth(1).waitFor() // a sample after ten seconds, and one at the end
  await tab.accessible()
  const lanes = await page.locator('[role=application] canvas').boundingBox()
  const drawn = await chart('Memory').locator('.u-over').boundingBox()
  assert.ok(
    Math.abs(drawn.x - (lanes.x + 8)) < 1.5 && Math.abs(drawn.width - (lanes.width - 16)) < 3,
    'they are aligned',
  )
  assert.ok(drawn.y > lanes.y + lanes.height)

  const before = await chart('Batches at work').getByRole('row').count()
  await chart('Memory').scrollIntoViewIfNeeded()
  const plot = await chart('Memory').locator('.u-over').boundingBox()
  await page.mouse.move(plot.x + plot.width / 4, plot.y + 40)
  await page.mouse.down()
  await page.mouse.move(plot.x + plot.width / 2, plot.y + 60, { steps: 4 })
  await page.mouse.up()
  await page.waitForURL(/[?&]t=\d+-\d+/)
  await page.getByRole('button', { name: 'The whole time' }).click()
  await page.waitForURL((url) => !url.searchParams.has('t'))
  assert.equal(await chart('Batches at work').getByRole('row').count(), before)
  await tab.close()
})

test('a run that was over before a sample was taken says so, and loads no charts of workers', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${quick}/timeline`)
  const { page } = tab
  await page.getByText('No samples are of this time').waitFor()
  await page.getByRole('figure', { name: 'Batches at work' }).waitFor()
  assert.equal(await page.getByRole('figure').count(), 2)
  await tab.close()
})

test('below the run is when its nodes were worked on', async () => {
  const tab = await Tab.open(browser, server, `/w/main/runs/${quick}`)
  const { page } = tab
  const fold = page.locator('details').filter({ has: page.locator('summary', { hasText: 'Timeline' }) })
  await fold.locator('summary').press('Enter')
  await fold.getByRole('link', { name: 'By worker and batch' }).waitFor()
  const nodes = page.getByRole('region', { name: 'What they did' }).locator('tbody tr')
  assert.equal(await fold.locator('tbody tr').count(), await nodes.count())
  assert.equal(await fold.locator('svg rect').count(), await nodes.count())
  for (const width of [1280, 360]) for (const dark of [false, true]) await tab.screenshot('run-times', { width, dark })
  await tab.accessible()
  await tab.close()
})

test('what a run cost is one look away, and what it cost last time', async () => {
  const again = await state.run('orders.yaml')
  const tab = await Tab.open(browser, server, `/w/main/runs/${again}`)
  const { page } = tab
  const fact = (name) => page.locator('dl.facts div').filter({ has: page.locator('dt', { hasText: name }) })
  await fact('Cost').getByText(`run ${quick}`).waitFor()
  const said = await fact('Cost').textContent()
  assert.match(said, new RegExp(`^Cost[0-9.,]+ worker-seconds \\(run ${quick}: [0-9.,]+ worker-seconds\\)$`))
  const loaded = await page.evaluate(() => performance.getEntriesByType('resource').map((r) => r.name))
  assert.ok(loaded.length && !loaded.some((name) => name.includes('Charts')), 'charts are loaded where they are needed')
  await page.goto(`${server.url}/w/main/runs/${slow}/nodes/wait`)
  const seconds = Number(/Cost([0-9.]+) worker-seconds/.exec(await fact('Cost').textContent())[1])
  assert.ok(seconds >= 12, `${seconds}`)
  await page.goto(`${server.url}/w/main`)
  await page
    .getByRole('row', { name: `slow #${slow}` })
    .getByText(/^[0-9.,]+ worker-seconds$/)
    .waitFor()
  await tab.close()
})

test('what limited a run is said with what it would gain, and why nothing is', async () => {
  for (const width of [1280, 360]) {
    const tab = await Tab.open(browser, server, `/w/main/runs/${slow}`, { width })
    const { page } = tab
    const asked = page.waitForResponse((r) => r.url().endsWith(`/runs/${slow}/causes`))
    await page.getByText('What limited it').press('Enter')
    const report = await (await asked).json()
    const first = report.named[0]
    assert.deepEqual([first.node, first.cause], ['wait', 'python'])
    const row = page.getByRole('row', { name: 'Python that waits' })
    await row.getByRole('link', { name: 'wait' }).waitFor()
    const cells = await row.getByRole('cell').allTextContents()
    for (const cell of cells.slice(2, 4)) assert.match(cell, /^1\d s$/)
    assert.match(cells[4], /s in Python.*Its code sleeps/)
    await page.getByText('Not measured of all nodes: load of other programs').waitFor()
    for (const dark of [false, true]) {
      await page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
      await row.scrollIntoViewIfNeeded()
      await tab.screenshot('run-causes', { dark, width })
      await tab.accessible()
    }
    await page.getByRole('link', { name: 'Work over time' }).click()
    await page.waitForURL(/timeline/)
    await tab.close()
  }
  const tab = await Tab.open(browser, server, `/w/main/runs/${quick}`)
  await tab.page.getByText('What limited it').click()
  await tab.page.getByText(/No cause is named: (the run is too short|nothing takes a large part)/).waitFor()
  await tab.close()
})
