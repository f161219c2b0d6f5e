// Pages in Chromium. What goes wrong in one fails its test: a report of the policy on content, an error, a request to
// another server.
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// screens is where pictures of pages go.
export const screens = process.env.THALWEG_TEST_SCREENS ?? join(tmpdir(), 'thalweg-screens')

// patience is how long a page may take for what is sure to come, in milliseconds.
const patience = 60_000

// openBrowser starts Chromium, which finds no server but those of this machine.
export function openBrowser() {
  return chromium.launch({
    executablePath: process.env.THALWEG_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1', '--font-render-hinting=none'],
  })
}

// Tab is a page of a server in a browser of its own: it shares no cookies with others. It emits problem for what goes
// wrong.
export class Tab extends EventEmitter {
  // open opens a path. as: a user of the server; null: nobody; by default whoever has started it.
  static async open(
    browser,
    server,
    path = '/',
    { as, width = 1280, height = 800, dark = false, motion = true, ...more } = {},
  ) {
    const tab = new Tab()
    tab.server = server
    tab.problems = []
    tab.context = await browser.newContext({
      viewport: { width, height },
      colorScheme: dark ? 'dark' : 'light',
      reducedMotion: motion ? 'no-preference' : 'reduce',
      locale: 'en-GB',
      timezoneId: 'Europe/Zurich',
      ...more,
    })
    tab.context.setDefaultTimeout(patience)
    await tab.context.exposeBinding('reportProblem', (_, text) => tab.#wrong(text))
    await tab.context.addInitScript(() => {
      addEventListener('securitypolicyviolation', (e) =>
        window.reportProblem(
          `policy: ${e.effectiveDirective} of ${e.blockedURI} ${e.sample} at ${e.sourceFile}:${e.lineNumber}`,
        ),
      )
    })
    tab.page = await tab.another()
    if (as) {
      const [name, value] = (await server.sessionOf(as)).split(/=(.*)/s)
      await tab.context.addCookies([{ name, value, url: server.url }])
    }
    if (as !== undefined) {
      await tab.page.goto(server.url + path)
    } else {
      const start = new URL(server.signIn)
      start.searchParams.set('next', path)
      await tab.page.goto(start.href)
      await tab.page.waitForURL(server.url + path)
    }
    return tab
  }

  #wrong(text) {
    this.problems.push(text)
    this.emit('problem')
  }

  // another opens one more page beside the first, of the same session.
  async another() {
    const page = await this.context.newPage()
    page.on('pageerror', (e) => this.#wrong(`error: ${e.stack ?? e}`))
    page.on('console', (m) => {
      // A failed request is for the page to say; reports of the policy come here, too.
      if (m.type() === 'error' && !m.text().startsWith('Failed to load resource')) this.#wrong(`console: ${m.text()}`)
    })
    page.on('request', (r) => {
      const url = new URL(r.url())
      if (url.origin !== this.server.url && !['data:', 'blob:'].includes(url.protocol))
        this.#wrong(`request: ${r.url()}`)
    })
    page.on('dialog', (d) => {
      this.#wrong(`dialog: ${d.message()}`)
      d.dismiss()
    })
    return page
  }

  // screenshot makes a picture, and returns its path.
  async screenshot(name, { width, height = 800, dark = false, full = true } = {}) {
    const before = this.page.viewportSize()
    if (width) await this.page.setViewportSize({ width, height })
    await this.page.emulateMedia({ colorScheme: dark ? 'dark' : 'light' })
    mkdirSync(screens, { recursive: true })
    const path = join(screens, `${name}-${width ?? before.width}-${dark ? 'dark' : 'light'}.png`)
    await this.page.screenshot({ path, fullPage: full, animations: 'disabled', caret: 'hide' })
    await this.page.setViewportSize(before)
    return path
  }

  // accessible fails for what axe finds wrong by WCAG 2.2 AA, on the page or on the element of a selector.
  async accessible(selector = null) {
    // Within a closure, so that axe is left on no page.
    const found = await this.page.evaluate(
      `(async () => { ${axeSource}; return axe.run(${selector ? JSON.stringify(selector) : 'document'},
        {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}) })()`,
    )
    const said = found.violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${n.html}: ${n.failureSummary}`))
    assert.deepEqual(said, [], `axe at ${this.page.url()}`)
  }

  // fits fails if the page is wider than its window.
  async fits() {
    const [is, has] = await this.page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ])
    assert.ok(is <= has, `${this.page.url()} is ${is} px wide in a window of ${has} px`)
  }

  // forgive takes the problems that are there, for a test that causes them, and returns them.
  forgive() {
    return this.problems.splice(0)
  }

  // close ends the pages, and fails for what went wrong on them.
  async close() {
    // An answer of a page comes behind what it has reported.
    for (const page of this.context.pages()) await page.evaluate(() => {}).catch(() => {})
    await this.context.close()
    assert.deepEqual(this.problems, [])
  }
}
