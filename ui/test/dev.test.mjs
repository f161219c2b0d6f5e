// A script is worked on: thalweg dev, an editor that writes its files, and the page.
import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { openBrowser, Tab } from './browser.mjs'
import { Server } from './server.mjs'
import { hostile, State, sales } from './state.mjs'

const script = (query, more = '') => `
nodes:
  read:
    type: file_table
    desc: Sales as the shops send them
    r: {urls: [sales.csv], columns: {id: int, shop: "string?", price: decimal2, sold: date}}
    w: sales
  sum:
    type: sql
    desc: What each shop sold
    r: sales
    query: "${query}"
    w: sums
  write: {type: table_file, r: sums, w: "{out}"}
${more}`
const counted = 'SELECT shop, count(*) AS n FROM sales GROUP BY shop'
const summed = 'SELECT shop, count(*) AS n, sum(price)::DECIMAL(18,2) AS price FROM sales GROUP BY shop'

let state, server, browser

before(async () => {
  state = new State()
  state.write('sales.csv', sales(300))
  state.write('params.yaml', 'out: sums.csv\n')
  state.write('shops.yaml', script(counted))
  server = await Server.run(state, 'dev', 'shops.yaml', '--params', 'params.yaml', '--memory', '1GB', '--no-browser')
  browser = await openBrowser()
})
after(async () => {
  await browser?.close()
  await server?.stop()
  state?.remove()
})

const at = '/w/main/dev/shops.yaml'

async function look(tab, name) {
  for (const width of [1280, 360])
    for (const dark of [false, true]) {
      await tab.page.setViewportSize({ width, height: 800 })
      await tab.screenshot(name, { dark, width })
      await tab.accessible()
      await tab.fits()
    }
  await tab.page.setViewportSize({ width: 1280, height: 800 })
}

test('the address that is printed leads to the page of the script', async () => {
  assert.equal(new URL(server.signIn).searchParams.get('next'), at)
})

test('what changes is seen and run, and the tables of the last good run stay', async () => {
  const tab = await Tab.open(browser, server, at)
  const { page } = tab
  const run = page.getByRole('button', { name: /^Run/ })
  const tables = page.getByRole('region', { name: 'Tables' })
  const latest = page.getByRole('region', { name: 'Latest run' })
  await page.getByText('No run of this script is here yet').waitFor()
  await page.getByText('3 nodes are computed.').waitFor()
  await look(tab, 'dev-new')
  await page.keyboard.press('r')
  await latest.getByText('run 1').waitFor()
  await latest.getByText('complete', { exact: true }).waitFor()
  await tables.getByRole('button', { name: 'n', exact: true }).waitFor()
  await page.getByText('Nothing has changed').waitFor()

  // Another query: its node and what reads it are computed, and the file that was read is taken over.
  state.write('shops.yaml', script(summed))
  await page.getByText('2 nodes are computed, and 1 is taken over').waitFor()
  await page.getByRole('listitem').filter({ hasText: 'sum' }).first().waitFor()
  await run.click()
  await latest.getByText('run 2').waitFor()
  await latest.getByText('complete', { exact: true }).waitFor()
  await tables.getByRole('button', { name: 'price', exact: true }).waitFor()
  const nodes = (await server.request('GET', '/v1/workspaces/main/runs/2')).nodes
  assert.deepEqual(
    nodes.map((n) => [n.node, n.reused_from?.run]),
    [
      ['read', 1],
      ['sum', undefined],
      ['write', undefined],
    ],
  )
  await look(tab, 'dev')

  // A mistake is there with its place, and takes nothing away.
  state.write('shops.yaml', script(summed.replace('FROM sales', 'FROM seles')))
  await page.getByText('it cannot be run like this').waitFor()
  await page.getByText('shops.yaml:12').waitFor()
  assert.ok(await run.isDisabled())
  await tables.getByRole('button', { name: 'price', exact: true }).waitFor()
  await tables.getByRole('cell', { name: 'Basel' }).waitFor()
  await look(tab, 'dev-mistake')
  state.write('shops.yaml', 'nodes: [')
  await page
    .getByText(/shops.yaml:[12]/)
    .first()
    .waitFor()
  await latest.getByText('run 2').waitFor()
  await tables.getByRole('cell', { name: 'Basel' }).waitFor()
  rmSync(join(state.dir, 'shops.yaml'))
  await page.getByText('The script cannot be looked at').waitFor()
  await tables.getByRole('cell', { name: 'Basel' }).waitFor()

  // A run that fails, too.
  state.write('shops.yaml', script(summed.replace('count(*)', 'max(shop::INTEGER)')))
  await page.getByText('2 nodes are computed').waitFor()
  await run.click()
  await latest.getByText('run 3').waitFor()
  await latest.getByText('failed', { exact: true }).first().waitFor()
  await tables.getByText('of run 2, the last one that is complete').waitFor()
  await tables.getByRole('cell', { name: 'Basel' }).waitFor()
  await tables.getByRole('button', { name: /^sales/ }).click()
  await tables.getByRole('button', { name: 'sold', exact: true }).waitFor()
  await look(tab, 'dev-failed')

  // The failure leads to the script as it was then.
  state.write('shops.yaml', `# another line\n${script(summed)}`)
  await page.getByRole('link', { name: 'Open the script there' }).click()
  const marked = page.locator('[aria-current="location"]')
  await marked.waitFor()
  assert.match(await marked.textContent(), /sum:|max\(shop::INTEGER\)/)
  assert.equal(await page.getByText('# another line').count(), 0)
  await look(tab, 'script')
  await tab.close()
})

test('parameters and files that the script includes count', async () => {
  const tab = await Tab.open(browser, server, at)
  const { page } = tab
  state.write('shops.yaml', `include: [more.yaml]\n${script(summed)}`)
  await page.getByText('more.yaml').first().waitFor()
  state.write('more.yaml', 'nodes:\n  again: {type: table_file, r: sums, w: "again-{out}"}\n')
  await page.getByText('no mistakes', { exact: true }).waitFor()
  state.write('params.yaml', 'to: sums.csv\n')
  await page.getByText('it cannot be run like this').waitFor()
  state.write('params.yaml', 'out: sums.csv\n')
  await page.getByText('no mistakes', { exact: true }).waitFor()
  await page.getByText(/(is|are) computed/).waitFor()
  await tab.close()
})

test('hostile text is text', async () => {
  const tab = await Tab.open(browser, server, at)
  const { page } = tab
  const text = JSON.stringify(hostile)
  state.write('shops.yaml', `${script(summed)}  odd: {type: ${text}, desc: ${text}}\n`)
  await page.getByText('</script>').first().waitFor()
  await page.goto(`${server.url}/w/main/scripts/shops.yaml`)
  await page.getByText('</script>').first().waitFor()
  await page.goto(`${server.url}/w/main/dev/${encodeURIComponent(hostile)}`)
  await page.getByText('The script cannot be looked at').waitFor()
  await page.goto(`${server.url}/w/main/scripts/${encodeURIComponent(hostile)}?run=1`)
  await page.getByText('shops.yaml').first().waitFor()
  await tab.close()
})
