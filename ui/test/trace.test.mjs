// What a trace tells of frames.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { framesOf } from './trace.mjs'

const [pid, tid] = [1, 2]
const mark = { name: 'thalweg-frames', pid, tid, ts: 5_100_000, args: { data: { startTime: 100 } } } // page's 0: 5 s
const task = (from, dur, tdur, more = {}) => ({
  name: 'ThreadControllerImpl::RunTask',
  pid,
  tid,
  ts: 5_000_000 + from * 1000,
  dur: dur * 1000,
  tdur: tdur * 1000,
  ...more,
})

test('of a frame the trace tells what the page computed and what it waited', () => {
  const { frames, longestTask } = framesOf(
    [
      mark,
      task(100, 30, 4, { name: 'RunTask' }),
      task(101, 20, 3), // within the first
      task(150, 40, 30), // begins in the second frame, ends in the third
      task(100, 50, 50, { tid: 3 }), // of another thread
      { ...task(100, 50, 50), name: 'Paint' },
    ],
    [100, 116, 166, 200],
  )
  assert.deepEqual(frames, [
    { took: 16, computed: 4, waited: 12 },
    { took: 50, computed: 4 + 16, waited: 10 },
    { took: 34, computed: 24, waited: 0 },
  ])
  assert.equal(longestTask, 30)
})

test('a trace without the page is refused', () => {
  assert.throws(() => framesOf([task(100, 30, 4)], [100, 116]), /no mark/)
  assert.throws(() => framesOf([mark], [100, 116]), /no tasks/)
})
