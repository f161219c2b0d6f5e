// State directories with runs, made by the program as people make them.
import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

// program is the thalweg that is tested.
export const program = resolve(process.env.THALWEG_PROGRAM ?? join(import.meta.dirname, '../../bin/thalweg'))

// environment of the programs: nothing of whoever runs the tests.
export const environment = { PATH: process.env.PATH, HOME: tmpdir(), TZ: 'UTC', USER: 'ada' }
if (process.env.LD_LIBRARY_PATH) environment.LD_LIBRARY_PATH = process.env.LD_LIBRARY_PATH

// Codes with which a run ends.
export const [done, failed, waits] = [0, 2, 3]

// State is a directory with scripts, their inputs, and .thalweg, which has the runs.
export class State {
  constructor() {
    this.dir = mkdtempSync(join(tmpdir(), 'thalweg-ui-'))
  }

  // write makes a file in the directory.
  write(name, text) {
    writeFileSync(join(this.dir, name), text)
    return name
  }

  // thalweg runs a command in a folder, which has to end with a code, and returns what it prints.
  async thalweg(args, code = done, folder = '.') {
    const options = { cwd: join(this.dir, folder), env: environment, maxBuffer: 64 << 20 }
    const ended = await promisify(execFile)(program, args, options).catch((e) => e)
    const got = ended.code ?? done
    if (got !== code)
      throw new Error(`thalweg ${args.join(' ')} ended with ${got}, not ${code}: ${ended.stderr || ended}`)
    return ended.stdout
  }

  // run runs a script, and returns the number of the run.
  async run(script, code = done, ...flags) {
    const out = await this.thalweg(['run', script, '--memory', '1GB', '--json', ...flags], code)
    return JSON.parse(out.trim().split('\n').at(-1)).run
  }

  remove() {
    rmSync(this.dir, { recursive: true, force: true })
  }
}

// deepRun runs a script of so many nodes, one behind the other, which fails at its first one.
export async function deepRun(state, nodes) {
  state.write('deep.csv', 'id\nnone\n')
  const lines = ['nodes:', '  node0: {type: file_table, r: {urls: [deep.csv], columns: {id: int}}, w: t0}']
  for (let i = 1; i < nodes; i++) {
    const tags = i > nodes / 2 ? ', tags: [late]' : ''
    lines.push(`  node${i}: {type: table_table, r: t${i - 1}${tags}, w: {name: t${i}, fields: [r.id]}}`)
  }
  lines.push(`  write: {type: table_file, r: t${nodes - 1}, w: deep.csv.out.csv}`)
  return state.run(state.write('deep.yaml', lines.join('\n')), failed)
}

const shops = ['Basel', 'Bern', 'Genève', 'Zürich', null, '', ' Chur ', 'zero\u200bwidth']

// sales returns lines of sales; wrong names the line whose price is none.
export function sales(rows, wrong = -1) {
  const lines = ['id,shop,price,sold']
  for (let i = 0; i < rows; i++) {
    const price = i === wrong ? '12;5' : `${(i * 37) % 400}.${String((i * 7) % 100).padStart(2, '0')}`
    const shop = shops[i % shops.length]
    lines.push(`${i},${shop === null ? '' : `"${shop}"`},${price},2026-03-${String(1 + (i % 28)).padStart(2, '0')}`)
  }
  return `${lines.join('\n')}\n`
}

const columns = '{id: int, shop: "string?", price: decimal2, sold: date}'

const ordersScript = `
nodes:
  read:
    type: file_table
    desc: Sales as the shops send them
    r: {urls: ["sales_*.csv"], columns: ${columns}}
    w: sales
    checks:
      - unique: id
  sum:
    type: sql
    desc: What each shop sold
    r: sales
    query: "SELECT shop, count(*) AS n, sum(price)::DECIMAL(18,2) AS price FROM sales GROUP BY shop"
    w: sums
  write: {type: table_file, desc: For the accountants, r: sums, w: sums.csv}
`

const retailScript = `
nodes:
  read:
    type: file_table
    r: {urls: ["retail_*.csv"], columns: ${columns}}
    w: retail
  write: {type: table_file, r: retail, w: retail.csv}
`

const pricesScript = `
nodes:
  read:
    type: file_table
    r: {urls: [prices.csv], columns: {id: int, price: "decimal2?"}}
    w:
      name: prices
      approval:
        by: [sales]
        message: Are the prices right?
        timeout: 3d
        answers:
          cutoff: {type: decimal2, default: 10, min: 0, max: 100, message: Least price}
    checks:
      - not_null: price
        severity: approval
  big:
    type: table_table
    r: prices
    w: {name: big, having: "w.price > decimal2({cutoff})", fields: [r.id, r.price]}
  write: {type: table_file, r: big, w: big.csv}
`

// finishedRun runs orders.yaml over three files.
export async function finishedRun(state) {
  for (const n of [1, 2, 3])
    state.write(
      `sales_${n}.csv`,
      sales(400).replace(/^(\d+),/gm, (_, id) => `${n * 1000 + Number(id)},`),
    )
  return state.run(state.write('orders.yaml', ordersScript))
}

// failedRun runs retail.yaml, which fails at one record of its second file, line 203.
export async function failedRun(state) {
  state.write('retail_1.csv', sales(300))
  state.write('retail_2.csv', sales(300, 201))
  return state.run(state.write('retail.yaml', retailScript), failed)
}

// repairRetail makes the record good at which retail.yaml failed: a retry of its batch succeeds.
export function repairRetail(state) {
  state.write('retail_2.csv', sales(300))
}

// waitingRuns runs prices.yaml twice. The first was approved; the second, with other prices, waits at gate prices.
export async function waitingRuns(state) {
  const rows = (n, price) => Array.from({ length: n }, (_, i) => `${i},${price(i)}`).join('\n')
  const script = state.write('prices.yaml', pricesScript)
  state.write('prices.csv', `id,price\n${rows(40, (i) => `${i}.50`)}\n`)
  const approved = await state.run(script, waits)
  await state.thalweg(['approve', `${approved}`, 'prices', '--role', 'sales', '--comment', 'as last month'])
  await state.thalweg(['resume', `${approved}`, '--memory', '1GB'])
  state.write('prices.csv', `id,price\n${rows(43, (i) => (i % 20 === 7 ? '' : `${i + (i % 5 === 0 ? 1 : 0)}.50`))}\n`)
  const waiting = await state.run(script, waits)
  return { approved, waiting }
}

// hostile is text that must be shown as it is, whoever wrote it: a script, a file, a person.
export const hostile = `</script><img src="http://other.invalid/x" onerror="alert(1)"><svg onload=alert(2)>{{7*7}}\u202e`

// hostileRuns runs two scripts that have hostile text wherever text can be: one waits at gate names, one has failed.
export async function hostileRuns(state) {
  const text = JSON.stringify(hostile)
  const cell = `"${hostile.replaceAll('"', '""')}\u0007"`
  const file = '<img src=x onerror=alert(3)>.csv'
  state.write(file, `id,name\n1,${cell}\n2,${cell}\n`)
  const read = `type: file_table, desc: ${text}, r: {urls: ["*alert*.csv"]`
  const gate = state.write(
    '<b>names.yaml',
    `nodes:
  read: {${read}, columns: {id: int, name: string}}, w: {name: names, approval: {by: [${text}], message: ${text}, answers: {word: {type: string, default: "<b>word", message: ${text}}}}}}
  write: {type: table_file, r: names, w: names.csv}
`,
  )
  const wrong = state.write(
    '<b>wrong.yaml',
    `nodes:
  read: {${read}, columns: {id: int, name: decimal2}}, w: wrong}
  write: {type: table_file, r: wrong, w: wrong.csv}
`,
  )
  const note = ['--note', hostile]
  return { waiting: await state.run(gate, waits, ...note), failed: await state.run(wrong, failed, ...note) }
}

// until waits for what is sure to become true.
export async function until(condition) {
  for (const end = Date.now() + 60_000; !(await condition()); ) {
    if (Date.now() > end) throw new Error(`never true: ${condition}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
