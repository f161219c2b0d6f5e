// Runs the tests of this directory, or those whose names are given: node test/run.mjs pages.
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { program } from './state.mjs'

if (!existsSync(program)) {
  console.error(`${program} is not there: make build makes it`)
  process.exit(2)
}
const asked = process.argv.slice(2)
const files = readdirSync(import.meta.dirname)
  .filter((f) => f.endsWith('.test.mjs') && (asked.length === 0 || asked.includes(f.replace('.test.mjs', ''))))
  .map((f) => join(import.meta.dirname, f))
if (files.length === 0) {
  console.error(`there are no tests ${asked.join(', ')}`)
  process.exit(2)
}
const ended = spawnSync(
  process.execPath,
  ['--test', '--test-reporter=spec', '--test-timeout=600000', '--test-concurrency=2', ...files],
  { stdio: 'inherit' },
)
process.exit(ended.status ?? 1)
