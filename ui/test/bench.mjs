// Measures the pages in Chromium over a real server on loopback: node test/bench.mjs [PART …]. It prints a table and
// writes it to bench/results. THALWEG_BENCH_TIMES: how often a page is opened; THALWEG_BENCH_MINUTES: how long the part
// hour is; THALWEG_BENCH_RESULTS: where it writes.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { deepRun, environment, failedRun, finishedRun, program, State, until, waitingRuns } from './state.mjs'
import { framesOf } from './trace.mjs'

const top = resolve(import.meta.dirname, '../..')
const dist = join(top, 'internal/web/dist')
const drive = join(top, 'bin/thalweg-drive')
const serve = join(top, 'bin/thalweg-serve')
const times = Number(process.env.THALWEG_BENCH_TIMES ?? 50)
const minutes = Number(process.env.THALWEG_BENCH_MINUTES ?? 60)
const streams = 200
const figures = []
const note = (what, value, unit, most) => {
  figures.push({ what, value, unit, most })
  console.error(`${what}: ${value.toFixed(2)} ${unit}`)
}
const hundredth = (values, p) => values.toSorted((a, b) => a - b)[Math.max(0, Math.ceil((values.length * p) / 100) - 1)]
const p95 = (values) => hundredth(values, 95)
const p50 = (values) => hundredth(values, 50)

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

// withServed lets thalweg-serve make what its case measures, and a browser look at it. say: it goes on.
async function withServed(of, flags, measure) {
  const dir = mkdtempSync(join(tmpdir(), 'thalweg-ui-'))
  const args = ['--pages', '--case', of, '--thalweg', program, '--dir', dir, '--streams', streams, '--times', times]
  const services = Object.entries(process.env).filter(([name]) => name.startsWith('THALWEG_TEST_'))
  const env = { ...environment, ...Object.fromEntries(services) }
  const made = spawn(serve, [...args, ...flags], { env, stdio: ['pipe', 'pipe', 'inherit'] })
  process.once('exit', () => made.kill())
  const ended = once(made, 'exit')
  let browser
  try {
    const lines = createInterface(made.stdout)[Symbol.asyncIterator]()
    const place = async () => JSON.parse((await lines.next()).value ?? 'null') ?? Promise.reject(new Error('it ended'))
    const { address, cookie } = await place()
    const server = Object.assign(new Server(), { url: address, cookie, sessionOf: async () => cookie })
    browser = await openBrowser()
    const open = (path) => Tab.open(browser, server, path, { as: 'whoever has started it' })
    await measure({ server, open, goOn: () => made.stdin.write('\n'), gone: place })
    made.stdin.end()
    const [code] = await ended
    if (code !== 0) throw new Error(`thalweg-serve ended with ${code}`)
  } finally {
    await browser?.close()
    made.kill()
    await ended
    rmSync(dir, { recursive: true, force: true })
  }
}

// watched lets a page of a run tell when it has painted how many batches of a node are done, by the clock of the machine.
function watched(tab, node) {
  return tab.page.evaluate((name) => {
    window.painted = []
    let most = 0
    const look = () => {
      const row = [...document.querySelectorAll('main tr')].find((r) => r.cells[0]?.textContent.trim() === name)
      const done = Number(/^(\d+)\/\d+$/.exec(row?.cells[2]?.textContent.trim() ?? '')?.[1] ?? 0)
      if (done <= most) return
      most = done
      requestAnimationFrame(() => {
        const painted = new MessageChannel()
        painted.port1.onmessage = () => window.painted.push([done, Date.now()])
        painted.port2.postMessage(0)
      })
    }
    new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true })
    look()
  }, node)
}

// committed says how long each commit of a node's batches, from an instant on, took to the screen, in seconds.
async function committed(server, tab, run, node, since) {
  const { events } = await server.request(
    'GET',
    `/v1/workspaces/main/runs/${run}/events?kind=batch_ended&node=${node}&least=noise&limit=5000`,
  )
  await tab.page.waitForFunction((n) => window.painted.at(-1)?.[0] === n, events.length)
  const painted = await tab.page.evaluate(() => window.painted)
  const took = events.flatMap((e, i) => {
    const at = Date.parse(e.time)
    return at < since ? [] : [(painted.find(([done]) => done > i)[1] - at) / 1000]
  })
  if (took.length < times) throw new Error(`only ${took.length} commits were watched`)
  return took
}

// turned measures from what a page is asked for to its rows on the screen, in seconds. ask, whole: functions in the page.
function turned(tab, ask, whole, of) {
  return tab.page.evaluate(
    ([askText, wholeText, value]) =>
      new Promise((done, fail) => {
        setTimeout(() => fail(new Error(`never on the screen: ${value}`)), 60_000)
        const [asks, isWhole] = [askText, wholeText].map((text) => new Function(`return ${text}`)())
        const before = document.querySelector('main tbody a')?.textContent
        const seen = new MutationObserver(() => {
          if (!isWhole(value, before)) return
          seen.disconnect()
          requestAnimationFrame(() => {
            const painted = new MessageChannel()
            painted.port1.onmessage = () => done((performance.now() - began) / 1000)
            painted.port2.postMessage(0)
          })
        })
        seen.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true })
        const began = performance.now()
        asks(value)
      }),
    [`${ask}`, `${whole}`, of],
  )
}

// busyOf is the share of the processors' time between two readings in which they worked.
function busyOf(before, after) {
  const sum = (all, of) => all.reduce((n, { times: t }) => n + of(t), 0)
  const grown = (of) => sum(after, of) - sum(before, of)
  return 1 - grown((t) => t.idle) / grown((t) => t.user + t.nice + t.sys + t.irq + t.idle)
}

// heapOf is what a page keeps, in MB.
async function heapOf(tab, page) {
  const cdp = await tab.context.newCDPSession(page)
  for (let i = 0; i < 3; i++) await cdp.send('HeapProfiler.collectGarbage')
  const { usedSize } = await cdp.send('Runtime.getHeapUsage')
  await cdp.detach()
  return usedSize / 1e6
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
      await browser.startTracing(tab.page, {
        categories: ['toplevel', 'blink.user_timing', 'disabled-by-default-devtools.timeline'],
      })
      await tab.page.evaluate(() => {
        window.frames = []
        performance.mark('thalweg-frames')
        const frame = (at) => {
          window.frames.push(at)
          requestAnimationFrame(frame)
        }
        requestAnimationFrame(frame)
      })
      const before = cpus()
      const code = await ended
      const busy = busyOf(before, cpus())
      const at = await tab.page.evaluate(() => window.frames)
      const trace = JSON.parse(await browser.stopTracing())
      if (code !== 0) throw new Error(`thalweg-drive ended with ${code}`)
      const { frames, longestTask } = framesOf(trace.traceEvents, at)
      const longest = frames.reduce((most, f) => (f.took > most.took ? f : most))
      note('longest frame meanwhile', longest.took, 'ms', 50)
      note('frames over 50 ms', frames.filter((f) => f.took > 50).length, `of ${frames.length}`)
      // What else the machine does makes frames late, but takes no processor time of the page.
      note('longest frame: the page computed', longest.computed, 'ms')
      note('longest frame: the page had work and no processor', longest.waited, 'ms')
      note('longest frame: the page had nothing to do', longest.took - longest.computed - longest.waited, 'ms')
      note('most that the page computed in a frame', Math.max(...frames.map((f) => f.computed)), 'ms')
      note('longest task of the page, processor time', longestTask, 'ms')
      note('processors busy meanwhile', 100 * busy, '%')
      note('batches ended in a second', Number(said), '')
      await tab.close()
    })
  },
  async leak() {
    await withPages(failedRun, async ({ server, browser, made: run }) => {
      const tab = await Tab.open(browser, server, '/w/main')
      const heap = () => heapOf(tab, tab.page)
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
  async screen() {
    await withPages(finishedRun, async ({ state, server, browser }) => {
      const tab = await Tab.open(browser, server, '/w/main')
      await server.request('GET', '/v1/me')
      // The clients of the streams give way: they would be on other machines.
      const listen = ['--case', 'listen', '--address', server.url, '--cookie', server.cookie, '--behind', '1']
      const listeners = spawn('nice', ['-n', '19', serve, ...listen, '--streams', `${streams}`], { env: environment })
      const heard = once(listeners, 'exit')
      const work = promisify(execFile)(
        drive,
        ['--state', join(state.dir, '.thalweg'), '--batches', `${times + 20}`, '--rate', '2'],
        { env: environment },
      )
      await tab.page.locator('a[href="/w/main/runs/2"]').first().click()
      await tab.page.locator('section[aria-labelledby="nodes"] tbody tr').first().waitFor()
      await watched(tab, 'n')
      await until(() => readdirSync(`/proc/${server.process.pid}/fd`).length > streams)
      const since = Date.now()
      await work
      const took = await committed(server, tab, 2, 'n', since)
      const [code] = await heard
      if (code !== 0) throw new Error(`the streams ended with ${code}`)
      note(`commit to screen, ${streams} streams`, p95(took), 's', 0.3)
      note(`commit to screen, ${streams} streams, median`, p50(took), 's')
      await tab.close()
    })
  },
  async 'screen-cluster'() {
    await withServed('news', ['--fleet', '--size', '5000000'], async ({ server, open, goOn, gone }) => {
      const tab = await open('/w/main')
      goOn()
      await tab.page.locator('a[href="/w/main/runs/1"]').first().click()
      await tab.page.locator('section[aria-labelledby="nodes"] tbody tr').first().waitFor()
      await watched(tab, 'write')
      await gone() // the run has ended
      const took = await committed(server, tab, 1, 'write', 0)
      note(`commit to screen in a cluster, ${streams} streams`, p95(took), 's', 1.5)
      note(`commit to screen in a cluster, ${streams} streams, median`, p50(took), 's')
      await tab.close()
    })
  },
  async rows() {
    await withServed('rows', ['--size', '10000000'], async ({ open }) => {
      const tab = await open('/w/main/tables/items?run=1')
      await tab.page.locator('section[aria-labelledby="profile"] tbody tr').first().waitFor()
      await tab.page.locator('input[name="row"]').waitFor()
      const took = { 9000000: [], 1: [] }
      for (let i = 0; i < times; i++)
        for (const row of [9_000_000, 1])
          took[row].push(
            await turned(
              tab,
              (to) => {
                const input = document.querySelector('input[name="row"]')
                input.value = to
                input.form.requestSubmit()
              },
              (to) =>
                document.querySelector('section[aria-labelledby="rows"] tbody td')?.textContent.trim() === `${to}`,
              row,
            ),
          )
      note('page of 10 M rows, row 1', p95(took[1]), 's', 0.2)
      note('page of 10 M rows, row 1, median', p50(took[1]), 's')
      note('page of 10 M rows, row 9,000,000', p95(took[9000000]), 's', 0.2)
      note('page of 10 M rows, row 9,000,000, median', p50(took[9000000]), 's')
      await tab.close()
    })
  },
  async runs() {
    await withServed('runs', ['--size', '100000'], async ({ open }) => {
      const tab = await open('/w/main?tab=runs')
      await tab.page.locator('main tbody a').first().waitFor()
      const took = { next: [], script: [], text: [] }
      for (let i = 0; i < times; i++)
        took.next.push(
          await turned(
            tab,
            () => [...document.querySelectorAll('main button')].find((b) => b.textContent === 'Earlier runs').click(),
            (_, before) => document.querySelector('main tbody a')?.textContent !== before,
          ),
        )
      await tab.page.goto(`${tab.page.url().split('?')[0]}?tab=runs`)
      await tab.page.locator('main tbody a').first().waitFor()
      const filter = ([name, value]) => {
        const input = document.querySelector(`input[name="${name}"]`)
        input.value = value
        input.dispatchEvent(new Event('change', { bubbles: true }))
      }
      const whole = ([, , first]) => document.querySelector('main tbody tr')?.textContent.includes(first)
      for (let i = 0; i < times; i++)
        took.script.push(await turned(tab, filter, whole, ['script', `script${i % 9}`, `script${i % 9} #`]))
      await tab.page.goto(`${tab.page.url().split('?')[0]}?tab=runs`)
      await tab.page.locator('main tbody a').first().waitFor()
      for (let i = 0; i < times; i++)
        took.text.push(await turned(tab, filter, whole, ['text', `NUMBER ${99_000 + i}`, `run number ${99_000 + i}`]))
      const far = await turned(tab, filter, whole, ['text', 'NUMBER 2000', 'run number 2000'])
      note('page of 100,000 runs, the next', p95(took.next), 's', 0.15)
      note('page of 100,000 runs, the next, median', p50(took.next), 's')
      note('page of 100,000 runs, of a script', p95(took.script), 's', 0.15)
      note('page of 100,000 runs, of a script, median', p50(took.script), 's')
      note('page of 100,000 runs, by a text', p95(took.text), 's', 0.15)
      note('page of 100,000 runs, by a text, median', p50(took.text), 's')
      note('page of 100,000 runs, by a text that none of the latest has', far, 's')
      await tab.close()
    })
  },
  async hour() {
    const rate = 5
    await withPages(failedRun, async ({ state, server, browser }) => {
      const tab = await Tab.open(browser, server, '/w/main')
      const batches = Math.ceil((minutes + 5) * 60 * rate)
      const args = ['--state', join(state.dir, '.thalweg'), '--batches', `${batches}`, '--rate', `${rate}`]
      const work = spawn(drive, args, { env: environment, stdio: ['ignore', 'ignore', 'inherit'] })
      process.once('exit', () => work.kill())
      const over = once(work, 'exit')
      await tab.page.locator('a[href="/w/main/runs/2"]').first().waitFor()
      const pages = new Map([['workspace', tab.page]])
      for (const [name, path, whole] of [
        ['Now', '/', 'main a[href="/w/main/runs/2"]'],
        ['run', '/w/main/runs/2', 'main tbody tr'],
        ['node', '/w/main/runs/2/nodes/n', 'main canvas'],
      ]) {
        const page = await tab.another()
        await page.goto(server.url + path)
        await page.locator(whole).first().waitFor()
        pages.set(name, page)
      }
      const wait = (part) => new Promise((done) => setTimeout(done, part * minutes * 60_000))
      const heaps = async () => {
        const all = []
        for (const page of pages.values()) all.push(await heapOf(tab, page))
        return all
      }
      const followed = () => pages.get('run').locator('section[aria-labelledby="nodes"] tbody td').nth(2).textContent()
      const first = await followed()
      await wait(1 / 10) // until all has been loaded again a few times
      const before = await heaps()
      await wait(1)
      const after = await heaps()
      if (work.exitCode !== null) throw new Error('the run has ended before')
      if ((await followed()) === first) throw new Error(`the page of the run still says ${first}`)
      work.kill()
      await over
      const names = [...pages.keys()]
      for (const [i, name] of names.entries())
        note(`heap after ${minutes} minutes more of watching, ${name}`, after[i] - before[i], 'MB', 5)
      await tab.close()
    })
  },
}

// The hour and the cluster, which needs services, are measured when they are asked for.
const aside = ['hour', 'screen-cluster']
const asked = process.argv.slice(2)
const names = asked.length ? asked : Object.keys(parts).filter((name) => !aside.includes(name))
const wrong = [
  ...names.filter((name) => !parts[name]).map((name) => `there is no part ${name}; there are ${Object.keys(parts)}`),
  ...[drive, serve].filter((path) => !existsSync(path)).map((path) => `${path} is not there`),
  ...(names.includes('screen-cluster') && !process.env.THALWEG_TEST_CASSANDRA
    ? ['screen-cluster is over the services of make services-up: eval "$(scripts/services env)"']
    : []),
]
if (wrong.length) {
  console.error(wrong.join('\n'))
  process.exit(2)
}
const most = 10 + (names.includes('hour') ? 1.2 * minutes : 0)
const late = setTimeout(() => {
  console.error(`the measurement takes more than ${most} minutes`)
  process.exit(2)
}, most * 60_000)
for (const name of names) await parts[name]()
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
