// A directory as a team has it on a morning: three workspaces, runs of which one failed at a record, one waits at a gate,
// one is late; schedules, a backfill. For pictures, and for what people do from the first page.
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Server } from './server.mjs'
import { environment, failed, program, State, waits } from './state.mjs'

const configuration = `version: 1
workspaces:
  feeds: {scripts: feeds, parameters: true}
  finance: {scripts: finance, parameters: true}
  sales: {scripts: sales, parameters: true}
limits: {user_requests_per_second: 10000, user_requests_burst: 10000, address_requests_per_second: 10000, address_requests_burst: 10000}
`

const shops = ['Basel', 'Bern', 'Genève', 'Lausanne', 'Lugano', 'St. Gallen', 'Winterthur', 'Zürich']

// sales returns the lines of one month; wrong is the number of a line whose price is none.
function sales(month, rows, wrong = -1) {
  const lines = ['sale;shop;article;price;sold']
  for (let i = 0; i < rows; i++) {
    const price = i === wrong ? '12,5O' : `${10 + ((i * 37) % 390)},${String((i * 7) % 100).padStart(2, '0')}`
    const id = month * 100_000 + i
    lines.push(`${id};${i % shops.length};A-${1000 + ((i * 13) % 97)};${price};2026-${two(month)}-${two(1 + (i % 28))}`)
  }
  return `${lines.join('\n')}\n`
}

const two = (n) => String(n).padStart(2, '0')

const shopsFile = `shop,city,region\n${shops.map((s, i) => `${i},${s},${['North', 'West', 'South'][i % 3]}`).join('\n')}\n`

// clock is a time of day in so many minutes, as a script has it.
const clock = (minutes) => `${new Date(Date.now() + minutes * 60_000).toISOString().slice(11, 16)} UTC`

const retail = () => `
schedule: {cron: 30 5 * * *, timezone: Europe/Zurich}
deadline: ${clock(65)}
nodes:
  read_shops:
    type: file_table
    desc: Shops and their regions
    r: {urls: [shops.csv], columns: {shop: int, city: string, region: string}}
    w: shops
  read_sales:
    type: file_table
    desc: One file of each month, as the tills send it
    r:
      urls: ["in/sales_*.csv"]
      csv: {separator: ";", decimal: ","}
      columns: {sale: int, shop: int, article: string, price: decimal2, sold: date}
    w: sales
    checks: [{unique: sale}]
  add_shops:
    type: table_lookup_table
    desc: Where each sale was
    r: sales
    l: {table: shops, on: shop, join_type: left}
    w: {name: placed, fields: [r.*, l.city, l.region]}
  sum_months:
    type: sql
    desc: What each region sold in each month
    r: placed
    query: "SELECT region, month(sold) AS month, count(*) AS sales, sum(price)::DECIMAL(18,2) AS total FROM placed GROUP BY ALL"
    w: months
  write_months: {type: table_file, desc: For the controllers, r: months, w: {url_template: ../out/months.csv, order: "region, month"}}
  write_sales: {type: table_file, desc: For the warehouse, r: placed, w: ../out/sales.parquet}
`

const prices = `
schedule: {cron: 0 6 1 * *, timezone: Europe/Zurich}
nodes:
  read_prices:
    type: file_table
    desc: The list of the buyers
    r: {urls: [prices.csv], columns: {article: string, price: "decimal2?", since: date}}
    w:
      name: prices
      approval:
        by: [sales]
        message: Are the prices of April right?
        timeout: 3d
        answers:
          least: {type: decimal2, default: 10, min: 0, max: 100, message: Least price}
    checks:
      - not_null: price
        severity: approval
  keep_dear:
    type: table_table
    r: prices
    w: {name: dear, having: "w.price >= decimal2({least})", fields: [r.article, r.price, r.since]}
  write_prices: {type: table_file, desc: For the tills, r: dear, w: ../out/prices.csv}
`

// priceList returns the lines of a list of prices.
function priceList(rows, price) {
  const lines = ['article,price,since']
  for (let i = 0; i < rows; i++) lines.push(`A-${1000 + i},${price(i)},2026-04-01`)
  return `${lines.join('\n')}\n`
}

const orders = `
nodes:
  read:
    type: file_table
    desc: Orders of a region
    r: {urls: ["orders_{region}.csv"], columns: {order: int, customer: string, amount: decimal2}}
    w: orders
    checks:
      - rows: {min: 1}
      - expression: w.amount > decimal2(0)
        severity: warn
  sum:
    type: sql
    desc: What each customer ordered
    r: orders
    query: "SELECT customer, count(*) AS orders, sum(amount)::DECIMAL(18,2) AS amount FROM orders GROUP BY customer"
    w: customers
  write: {type: table_file, desc: For the accountants, r: customers, w: {url_template: "out/customers_{region}.csv", order: customer}}
`

// orderList returns the lines of orders of a region; every 40th has an amount that a check warns of.
function orderList(rows, more) {
  const lines = ['order,customer,amount']
  for (let i = 0; i < rows; i++)
    lines.push(
      `${i},customer ${two(i % 24)},${i % 40 === 39 ? '0.00' : `${(i * 31 + more) % 900}.${two((i * 3) % 100)}`}`,
    )
  return `${lines.join('\n')}\n`
}

const nightly = (deadline) => `
deadline: "${deadline}"
nodes:
  read:
    type: file_table
    desc: Addresses that came overnight
    r: {urls: [addresses.csv], columns: {id: int, street: string}}
    w: addresses
  place:
    type: table_custom_tfm_table
    custom_proc_type: py_calc
    desc: Finds the place of each address
    r: {table: addresses, expected_batches_total: 8}
    p: {python_code_urls: [places.py], calculated_fields: {place: {expression: "find(r.street)", type: string}}}
    w: {name: places, fields: [r.id, r.street, p.place]}
  write: {type: table_file, desc: For the couriers, r: places, w: ../out/places.csv}
`

const places = `import time


def find(street):
    time.sleep(0.25)
    return street.upper()
`

const blind = `
watch: {files: "sftp://feeds@127.0.0.1:1/in/*.csv"}
nodes:
  read: {type: file_table, r: {urls: ["{watched_file}"], columns: {id: int}}, w: partners}
  write: {type: table_file, r: partners, w: ../out/partners.csv}
`

// makeDemo makes the directory and its runs, and serves it. It returns the numbers of the runs, too.
export async function makeDemo() {
  const state = new State()
  for (const d of ['feeds/in', 'finance', 'sales', 'out']) mkdirSync(join(state.dir, d), { recursive: true })
  const at = (workspace) => ['--workspace', workspace, '--state', '../.thalweg', '--memory', '1GB']
  // Names of files in a script are seen from where it is, by whoever works on its runs.
  const thalweg = (workspace, args, code) => state.thalweg([...args, ...at(workspace)], code, workspace)
  const run = async (workspace, script, code, ...flags) => {
    const out = await thalweg(workspace, ['run', script, '--json', ...flags], code)
    return JSON.parse(out.trim().split('\n').at(-1)).run
  }

  const examples = join(import.meta.dirname, '../../examples/portfolio')
  cpSync(examples, join(state.dir, 'finance'), { recursive: true })
  const generate = join(program, '../thalweg-generate')
  execFileSync(generate, ['portfolio', '--accounts', '4', '--out', 'in'], {
    cwd: join(state.dir, 'finance'),
    env: environment,
  })
  const params = join(state.dir, 'finance/in/params.json')
  writeFileSync(params, readFileSync(params, 'utf8').replaceAll(`${join(state.dir, 'finance')}/`, ''))
  renameSync(join(state.dir, 'finance/script.yaml'), join(state.dir, 'finance/portfolio.yaml'))
  const portfolio = await run('finance', 'portfolio.yaml', 0, '--params', 'in/params.json')

  for (const region of ['north', 'south', 'west'])
    state.write(`sales/orders_${region}.csv`, orderList(400, region.length))
  state.write('sales/orders.yaml', orders)
  const yesterday = await run('sales', 'orders.yaml', 0, '--param', 'region=north', '--note', 'March, as closed')
  state.write('sales/orders_north.csv', orderList(412, 9))
  const today = await run('sales', 'orders.yaml', 0, '--param', 'region=north', '--note', 'March, with late orders')
  await thalweg('sales', ['run', 'orders.yaml', '--matrix', 'region=north,south,west'])

  state.write('sales/prices.yaml', prices)
  state.write(
    'sales/prices.csv',
    priceList(96, (i) => `${8 + i}.50`),
  )
  const approved = await run('sales', 'prices.yaml', waits)
  await state.thalweg([
    'approve',
    `${approved}`,
    'prices',
    '--workspace',
    'sales',
    '--role',
    'sales',
    '--comment',
    'as in the catalogue',
  ])
  await thalweg('sales', ['resume', `${approved}`])
  state.write(
    'sales/prices.csv',
    priceList(99, (i) => (i % 48 === 47 ? '' : `${8 + i + (i % 8 === 0 ? 1 : 0)}.50`)),
  )
  const waiting = await run('sales', 'prices.yaml', waits)

  state.write('feeds/shops.csv', shopsFile)
  state.write('feeds/retail.yaml', retail())
  for (let m = 1; m <= 12; m++) state.write(`feeds/in/sales_${two(m)}.csv`, sales(m, 2000))
  await run('feeds', 'retail.yaml', 0)
  state.write('feeds/in/sales_03.csv', sales(3, 2000, 1203))
  const wrong = await run('feeds', 'retail.yaml', failed)

  state.write('feeds/partners.yaml', blind)
  state.write('feeds/places.py', places)
  const addresses = (n) => `id,street\n${Array.from({ length: n }, (_, i) => `${i},Dorfstrasse ${i}`).join('\n')}\n`
  state.write('feeds/nightly.yaml', nightly(new Date(Date.now() + 3600_000).toISOString()))
  state.write('feeds/addresses.csv', addresses(8))
  await run('feeds', 'nightly.yaml', 0)
  state.write('feeds/nightly.yaml', nightly(new Date(Date.now() + 2000).toISOString()))
  state.write('feeds/addresses.csv', addresses(4000))

  const server = await Server.start(state, { config: configuration, flags: ['--worker', '--scheduler'] })
  const late = await server.request('POST', '/v1/workspaces/feeds/runs', { script: 'nightly.yaml' })
  return { state, server, portfolio, yesterday, today, approved, waiting, failed: wrong, late: late.run }
}

// repairDemo makes the record good at which a run failed.
export function repairDemo({ state }) {
  state.write('feeds/in/sales_03.csv', sales(3, 2000))
}
