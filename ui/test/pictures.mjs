// Pictures of the pages for the documentation: node test/pictures.mjs DIRECTORY. Times are those of one morning, names
// those of nobody: whoever makes them again gets pictures that are like those that are there.
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { openBrowser, Tab } from './browser.mjs'
import { makeDemo } from './demo.mjs'

const directory = resolve(process.argv[2])
const morning = Date.parse('2026-04-02T05:10:00Z')

const demo = await makeDemo()
const browser = await openBrowser()
const { name } = await demo.server.request('GET', '/v1/me')
const shift = morning - Date.now()

// told is an answer of the server as if it were that morning, on nobody's machine.
const told = (text) =>
  text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, (at) => new Date(Date.parse(at) + shift).toISOString())
    .replaceAll(name, 'anna')
    .replaceAll(/[^"\s]*\/thalweg-ui-\w+\//g, '/data/')
    .replaceAll(/"(vm|host)"/g, '"host"')

// picture makes a picture of a page, as long as it is, but no longer than that.
async function picture(file, path, shows, { prepare = () => {}, width = 1280, longest = 1200, dark = false } = {}) {
  const tab = await Tab.open(browser, demo.server, '/', { width, dark, motion: false, deviceScaleFactor: 1 })
  const { page } = tab
  await page.goto('about:blank')
  await page.clock.setFixedTime(morning)
  await page.route('**/v1/**', async (route) => {
    if (route.request().url().includes('/v1/stream')) return route.continue()
    const answer = await route.fetch()
    const type = answer.headers()['content-type'] ?? ''
    if (!type.includes('json')) return route.fulfill({ response: answer })
    await route.fulfill({ response: answer, body: told(await answer.text()) })
  })
  await page.goto(demo.server.url + path)
  await page.getByText(shows).first().waitFor()
  await prepare(page)
  await page.evaluate(() => document.activeElement?.blur())
  const height = Math.min(longest, await page.evaluate(() => document.documentElement.scrollHeight))
  await page.setViewportSize({ width, height })
  const png = join(directory, `${file}.png`)
  mkdirSync(directory, { recursive: true })
  await page.screenshot({ path: png, animations: 'disabled', caret: 'hide' })
  // A palette of few colours is enough for pages, and a third of the size.
  execFileSync('convert', [
    png,
    '+dither',
    '-colors',
    '128',
    '-strip',
    '-define',
    'png:compression-level=9',
    `PNG8:${png}`,
  ])
  await page.unrouteAll({ behavior: 'ignoreErrors' })
  await tab.context.close()
  console.log(png)
}

const { failed, today, yesterday, waiting, portfolio } = demo
await picture('now', '/', 'things need you')
await picture('run', `/w/feeds/runs/${failed}`, 'nothing is lost')
await picture('run-dark', `/w/finance/runs/${portfolio}`, 'Complete:', { dark: true })
await picture('gate', `/w/sales/gates/${waiting}/prices`, '99 rows (+3)')
await picture('workspace', '/w/sales', `orders #${today}`, { longest: 620 })
await picture('node', `/w/feeds/runs/${failed}/nodes/read_sales`, 'Where the time went')
await picture('table', `/w/finance/tables/account_period_sector_perf?run=${portfolio}`, 'rows 1 to', { longest: 800 })
await picture(
  'trace',
  `/w/sales/trace?table=customers&run=${today}&where=customer+%3D+'customer+03'`,
  'orders_north.csv',
  {
    longest: 620,
  },
)
await picture('diff', `/w/sales/diff?table=customers&a=${yesterday}&b=${today}&key=customer`, 'have changed', {
  longest: 760,
})
await picture('timeline', `/w/finance/runs/${portfolio}/timeline`, 'slot', { longest: 700 })
await picture('sql', '/w/finance/sql', 'One query', {
  longest: 640,
  prepare: async (page) => {
    await page
      .getByRole('textbox')
      .first()
      .fill(
        'SELECT sector, round(avg(twr), 2) AS mean\nFROM account_period_sector_perf\nGROUP BY sector ORDER BY mean DESC',
      )
    await page.getByRole('button', { name: 'Run' }).click()
    await page.getByRole('columnheader', { name: 'mean' }).waitFor()
  },
})
await picture('start', '/w/sales/start?script=prices.yaml', 'read_prices', { longest: 640 })
await picture('phone', `/w/feeds/runs/${failed}`, 'nothing is lost', { width: 360, longest: 720 })
await browser.close()
await demo.server.stop()
demo.state.remove()
