// The states and servers that the tests of pages stand on are as those tests take them to be.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Server } from './server.mjs'
import { failedRun, finishedRun, hostile, hostileRuns, repairRetail, State, until, waitingRuns } from './state.mjs'

let state, server, runs

before(async () => {
  state = new State()
  runs = { finished: await finishedRun(state), failed: await failedRun(state), ...(await waitingRuns(state)) }
  server = await Server.start(state)
})
after(async () => {
  await server?.stop()
  state?.remove()
})

const of = (run, rest = '') => server.request('GET', `/v1/workspaces/main/runs/${run}${rest}`)

test('each run is where it is meant to be', async () => {
  const statuses = {}
  for (const [name, run] of Object.entries(runs)) statuses[name] = (await of(run)).status
  assert.deepEqual(statuses, { finished: 'complete', failed: 'failed', approved: 'complete', waiting: 'waiting' })
})

test('a failed run is complete once its input is right and it is retried', async () => {
  repairRetail(state)
  const order = { kind: 'retry', dry_run: true }
  const path = `/v1/workspaces/main/runs/${runs.failed}/orders`
  const { token } = await server.request('POST', path, order)
  const { submitted } = await server.request('POST', path, { ...order, dry_run: false, token })
  await until(async () => (await of(submitted.run)).status === 'complete')
})

test('hostile text comes to pages as it is', async () => {
  const made = await hostileRuns(state)
  assert.equal((await of(made.waiting)).status, 'waiting')
  assert.ok(JSON.stringify(await of(made.failed)).includes(JSON.stringify(hostile).slice(1, -1)))
})

test('a server that was killed comes again at its address', async () => {
  const other = new State()
  const run = await finishedRun(other)
  const first = await Server.start(other)
  await first.kill()
  const second = await first.again()
  assert.equal(second.url, first.url)
  assert.equal((await second.request('GET', `/v1/workspaces/main/runs/${run}`)).status, 'complete')
  await second.stop()
  other.remove()
})
