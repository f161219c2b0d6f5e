// Measures the pages in Chromium over a real server on loopback: node test/bench.mjs [PART …]. It prints a table and
// writes it to bench/results. THALWEG_BENCH_TIMES: how often a page is opened; THALWEG_BENCH_RESULTS: where it writes.
import { execFile, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { deepRun, environment, failedRun, finishedRun, State, waitingRuns } from './state.mjs'

const top = resolve(import.meta.dirname, '../..')
const dist = join(top, 'internal/web/dist')
const drive = join(top, 'bin/thalweg-drive')
const times = Number(process.env.THALWEG_BENCH_TIMES ?? 50)
const figures = []
const note = (what, value, unit, most) => {
  figures.push({ what, value, unit, most })
  console.error(`${what}: ${value.toFixed(2)} ${unit}`)
}
const p95 = (values) => values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil(values.length * 0.95) - 1)]

// with starts a server over a state that fill makes, and a browser.
async function withPages(fill, measure) {
  const state = new State()
  let server, browser
  try {
    const made = await fill(state)
    server = await Server.start(state, { flags: [] })
    browser = await openBrowser()
    await measure({ state, server, browser, made })
  } finally {
    await browser?.close()
    await server?.stop()
    state.remove()
  }
}

const driven = (state, batches) =>
  promisify(execFile)(drive, ['--state', join(state.dir, '.thalweg'), '--batches', `${batches}`], { env: environment })

// opened measures how long a page takes from its address to what is there when it can be used.
async function opened({ server, browser }, path, usable) {
  const tab = await Tab.open(browser, server, '/w/main')
  const took = { paint: [], usable: [] }
  for (let i = 0; i < times; i++) {
    await tab.page.goto('about:blank')
    await tab.page.goto(server.url + path, { waitUntil: 'commit' })
    // Both by the page's own clock, which begins when the address is asked for.
    took.usable.push(
      await tab.page.evaluate(
        (selector) =>
          new Promise((done) => {
            const look = () =>
              document.querySelector(selector) ? done(performance.now() / 1000) : requestAnimationFrame(look)
            look()
          }),
        usable,
      ),
    )
    took.paint.push(
      await tab.page.evaluate(
        () =>
          new Promise((done) => {
            new PerformanceObserver((list) => {
              for (const e of list.getEntriesByName('first-contentful-paint')) done(e.startTime / 1000)
            }).observe({ type: 'paint', buffered: true })
          }),
      ),
    )
  }
  await tab.close()
  return { paint: p95(took.paint), usable: p95(took.usable) }
}

// longestTask is the processor time of the longest task of a main thread of pages, in milliseconds.
function longestTask({ traceEvents: all }) {
  const mains = all.filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain')
  const threads = new Set(mains.map((e) => `${e.pid}/${e.tid}`))
  const tasks = all.filter((e) => e.tdur && /RunTask$/.test(e.name) && threads.has(`${e.pid}/${e.tid}`))
  if (!tasks.length) throw new Error('the trace has no tasks of the page')
  return tasks.reduce((most, e) => Math.max(most, e.tdur / 1000), 0)
}

const parts = {
  async size() {
    await withPages(finishedRun, async ({ server, browser }) => {
      const tab = await Tab.open(browser, server)
      const network = await tab.context.newCDPSession(tab.page)
      await network.send('Network.enable')
      await network.send('Network.setCacheDisabled', { cacheDisabled: true })
      let bytes = 0
      network.on('Network.loadingFinished', (e) => {
        bytes += e.encodedDataLength
      })
      await tab.page.reload()
      await tab.page.locator('main a[href="/w/main/runs/1"]').first().waitFor() // all that the page asked for has come
      await tab.page.waitForLoadState('load')
      note('first view, compressed', bytes / 1000, 'KB', 120)
      await tab.close()
    })
    const files = readdirSync(dist, { recursive: true }).filter(
      (f) => /\.(gz|html)$/.test(f) && !f.includes('licenses'),
    )
    note('all, compressed', files.reduce((sum, f) => sum + statSync(join(dist, f)).size, 0) / 1000, 'KB', 450)
  },
  async now() {
    const fill = async (state) => {
      await finishedRun(state)
      await failedRun(state)
      await waitingRuns(state)
    }
    await withPages(fill, async (all) => {
      const took = await opened(all, '/', 'main a[href*="/gates/"]')
      note('Now, first paint', took.paint, 's', 0.6)
      note('Now, usable', took.usable, 's', 1)
    })
  },
  async node() {
    await withPages(
      (state) => driven(state, 32_000),
      async (all) =>
        note('node of 32,000 batches', (await opened(all, '/w/main/runs/1/nodes/n', 'main canvas')).usable, 's', 1),
    )
  },
  async dag() {
    await withPages(
      (state) => deepRun(state, 1000),
      async (all) =>
        note('DAG of 1,000 nodes', (await opened(all, `/w/main/runs/${all.made}`, '.frame .vertex')).usable, 's', 1.5),
    )
  },
  async frames() {
    const batches = 10_000
    await withPages(finishedRun, async ({ state, server, browser }) => {
      // The next run is followed from its first batch on.
      const tab = await Tab.open(browser, server, '/w/main')
      const work = spawn(drive, ['--state', join(state.dir, '.thalweg'), '--batches', `${batches}`, '--rate', '500'], {
        env: environment,
      })
      let said = ''
      work.stdout.on('data', (text) => {
        said += text
      })
      const ended = new Promise((done) => work.on('exit', done))
      await tab.page.locator('a[href="/w/main/runs/2"]').first().click()
      await tab.page.locator('.frame .vertex, main h1').first().waitFor()
      await tab.page.evaluate(() => {
        window.frames50 = { all: 0, longest: 0, late: 0 }
        let last = performance.now()
        const frame = (at) => {
          const took = at - last
          last = at
          window.frames50.all++
          window.frames50.longest = Math.max(window.frames50.longest, took)
          if (took > 50) window.frames50.late++
          requestAnimationFrame(frame)
        }
        requestAnimationFrame(frame)
      })
      await browser.startTracing(tab.page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] })
      const code = await ended
      const trace = JSON.parse(await browser.stopTracing())
      if (code !== 0) throw new Error(`thalweg-drive ended with ${code}`)
      const seen = await tab.page.evaluate(() => window.frames50)
      note('longest frame meanwhile', seen.longest, 'ms', 50)
      note('frames over 50 ms', seen.late, `of ${seen.all}`)
      // What the machine does besides makes frames late, but takes no time of the page's processor.
      note('longest task of the page, processor time', longestTask(trace), 'ms')
      note('batches ended in a second', Number(said), '')
      await tab.close()
    })
  },
  async leak() {
    await withPages(failedRun, async ({ server, browser, made: run }) => {
      const tab = await Tab.open(browser, server, '/w/main')
      const cdp = await tab.context.newCDPSession(tab.page)
      const heap = async () => {
        for (let i = 0; i < 3; i++) await cdp.send('HeapProfiler.collectGarbage')
        return (await cdp.send('Runtime.getHeapUsage')).usedSize / 1e6
      }
      // Each view with what is there once it is whole.
      const of = `/w/main/runs/${run}`
      const views = [
        ['/w/main', `main table a[href="${of}"]`],
        [of, 'main .frame .vertex'],
        [`${of}/nodes/read`, 'main #panel table'],
        ['/', `main .needs a[href="${of}"]`],
      ]
      let rounds = 0
      const round = async () => {
        for (const [path, whole] of views) {
          await tab.page.evaluate((to) => {
            const a = Object.assign(document.createElement('a'), { href: to })
            document.body.append(a)
            a.click()
            a.remove()
          }, path)
          await tab.page.locator(whole).first().waitFor()
        }
        // An event for each round: what is shown is loaded again, and says so.
        const comment = `round ${++rounds}`
        await server.request('POST', `/v1/workspaces/main/runs/${run}/take`, { comment })
        await tab.page.getByText(comment).waitFor()
      }
      for (let i = 0; i < 10; i++) await round()
      const before = await heap()
      const more = 4 * times // of each four views: an hour of somebody who changes the view every five seconds
      for (let i = 0; i < more; i++) await round()
      note(`heap after ${views.length * more} views more`, (await heap()) - before, 'MB', 5)
      await tab.close()
    })
  },
}

const asked = process.argv.slice(2)
const unknown = asked.filter((name) => !parts[name])
if (unknown.length || !existsSync(drive)) {
  console.error(
    unknown.length ? `there is no part ${unknown}; there are ${Object.keys(parts)}` : `${drive} is not there`,
  )
  process.exit(2)
}
const late = setTimeout(() => {
  console.error('the measurement takes more than 10 minutes')
  process.exit(2)
}, 600_000)
for (const name of asked.length ? asked : Object.keys(parts)) await parts[name]()
clearTimeout(late)
const missed = figures.filter((f) => f.most !== undefined && f.value > f.most)
const cpu = cpus()
const date = new Date().toISOString()
const table = [
  '# ui',
  '',
  `The pages in Chromium over a server on loopback, 95th hundredth of ${times}, measured ${date.slice(0, 16).replace('T', ' ')} UTC.`,
  '',
  '| what | value | bar | verdict |',
  '| --- | --- | --- | --- |',
  ...figures.map((f) => {
    const verdict = f.most === undefined ? 'not judged' : f.value > f.most ? 'missed' : 'pass'
    return `| ${f.what} | ${f.value.toFixed(2)} ${f.unit} | ${f.most === undefined ? '' : `≤ ${f.most} ${f.unit}`} | ${verdict} |`
  }),
  '',
  `- machine: ${cpu[0]?.model}, ${cpu.length} cores`,
  `- sources: ${readFileSync(join(dist, 'sources.sha256'), 'utf8').trim()}`,
  '',
].join('\n')
console.log(table)
const results = process.env.THALWEG_BENCH_RESULTS ?? join(top, 'bench/results')
let path = join(results, `${date.slice(0, 10)}-ui.md`)
for (let n = 2; existsSync(path); n++) path = join(results, `${date.slice(0, 10)}-ui-${n}.md`)
writeFileSync(path, table)
console.log(`written to ${path}`)
process.exit(missed.length ? 1 : 0)
