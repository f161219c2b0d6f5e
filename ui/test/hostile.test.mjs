// Text of others is shown as it is: nothing of it becomes part of a page.
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { hostile, hostileRuns, State, until } from './state.mjs'

let state, server, browser, runs
const begins = hostile.slice(0, 18) // before the first quote, which messages escape

before(async () => {
  state = new State()
  runs = await hostileRuns(state)
  state.write(
    '<b>yearly.yaml',
    `schedule: {cron: '0 5 1 1 *', name: '<b>yearly<img src=x onerror=alert(5)>'}
nodes:
  read: {type: file_table, r: {urls: [day.csv], columns: {n: int}}, w: day}
`,
  )
  server = await Server.start(state, { flags: ['--worker', '--scheduler'] })
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

test('hostile text is text, on every page', async () => {
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const failed = `/w/main/runs/${runs.failed}`
  for (const [path, shows] of [
    ['/', begins],
    ['/w/main', '<b>'],
    ['/w/main?tab=matrix', '<b>'],
    ['/w/main?tab=audit', 'create'],
    [failed, begins],
    [`${failed}/nodes/read`, begins],
    [`/w/main/gates/${runs.waiting}/names`, begins],
    [`/w/main/tables/names?run=${runs.waiting}&column=name`, begins],
    [`/w/main/tables/${encodeURIComponent(hostile)}?run=1`, begins],
    [`/w/${encodeURIComponent(hostile)}`, begins],
  ]) {
    await page.goto(server.url + path)
    await page.getByText(shows).filter({ visible: true }).first().waitFor()
  }
  await page.goto(server.url + failed)
  await page.getByText('What happened').click()
  await page.getByText('Run info').click()
  await page.getByText(begins).filter({ visible: true }).last().waitFor()
  await tab.close()
})

// What people write for others goes through the API, as any program can write it.
test('hostile comments, reasons and names of workers are text', async () => {
  const at = '/v1/workspaces/main'
  await server.request('POST', `${at}/runs/${runs.failed}/take`, { comment: hostile })
  let schedules
  await until(async () => {
    schedules = await server.request('GET', `${at}/schedules`)
    return schedules.length
  })
  const order = { kind: 'pause', reason: hostile }
  await server.request('POST', `${at}/schedules/${encodeURIComponent(schedules[0].id)}/orders`, order)
  const tab = await Tab.open(browser, server)
  const { page } = tab
  const see = (shows) => page.getByText(shows).filter({ visible: true }).first().waitFor()
  await see('Taken by')
  await page.getByText(begins).nth(1).waitFor()

  const now = Date.now()
  const numbers = (n) => [n, n, n]
  await page.route('**/samples*', (route) =>
    route.fulfill({
      json: {
        from: new Date(now - 60_000).toISOString(),
        to: new Date(now).toISOString(),
        workers: [7, 8].map((process) => ({
          worker: `<img src=x onerror=alert(4)>/${process}`,
          ...{ at_ms: [10_000, 20_000, 30_000], took_ms: numbers(10_000), cpu_ms: numbers(500), cores: numbers(2) },
          ...{ children_cpu_ms: numbers(0), resident_bytes: numbers(1), children_resident_bytes: numbers(0) },
          ...{ memory_limit_bytes: numbers(9), disk_free_bytes: numbers(5), disk_total_bytes: numbers(9) },
          ...{ read_bytes: numbers(1), written_bytes: numbers(1) },
        })),
      },
    }),
  )
  const read = `/w/main/runs/${runs.failed}/nodes/read`
  const tag = encodeURIComponent(hostile)
  for (const [path, shows] of [
    ['/w/main?tab=schedules', begins],
    [`/w/main/runs/${runs.failed}/timeline`, '<img src=x'],
    [`/w/main/runs/${runs.waiting}?tag=${tag}&find=${tag}`, begins],
    [`${read}?batch=0`, begins],
    [`${read}?tab=sql`, 'alert'],
    [`${read}?tab=attempts`, begins],
    [`${read}?tab=lineage`, 'alert'],
    ['/w/main/scripts/%3Cb%3Ewrong.yaml', 'cannot be the name'],
    [`/w/main/scripts/%3Cb%3Ewrong.yaml?run=${runs.failed}`, 'alert(1)'],
    ['/w/main/dev/%3Cb%3Ewrong.yaml', '<b>wrong'],
    ['/w/main/start?script=%3Cb%3Enames.yaml', '<b>names'],
    [`/w/main/trace?table=names&run=${runs.waiting}`, 'names'],
    [`/w/main?pick=${runs.failed}`, '<b>'],
  ]) {
    await page.goto(server.url + path)
    await see(shows).catch(async () => {
      throw new Error(`${path} shows ${await page.locator('main').textContent()}`)
    })
  }
  await page.getByRole('button', { name: 'Retry…' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByText('<b>wrong').first().waitFor()
  await dialog.getByRole('button', { name: 'Retry 1 run' }).click()
  await dialog.getByText('1 order given.').waitFor()
  await tab.close()
})
