// What a trace of Chromium tells of the frames of a page.

/**
 * framesOf says of each frame how long it took, how long the main thread of its page computed in it, and how long it had
 * a task but did not run, in milliseconds; and how much processor time the longest task took. at: when each frame began,
 * by the clock of the page, which has marked thalweg-frames.
 */
export function framesOf(events, at) {
  const mark = events.find((e) => e.name === 'thalweg-frames')
  if (!mark) throw new Error('the trace has no mark of the page')
  const zero = mark.ts / 1000 - mark.args.data.startTime
  const tasks = outermost(
    events.filter((e) => e.pid === mark.pid && e.tid === mark.tid && e.tdur !== undefined && /RunTask$/.test(e.name)),
  ).map((e) => ({ from: e.ts / 1000 - zero, to: (e.ts + e.dur) / 1000 - zero, computed: e.tdur / 1000 }))
  if (!tasks.length) throw new Error('the trace has no tasks of the page')
  const frames = []
  for (let i = 1; i < at.length; i++) {
    const frame = { took: at[i] - at[i - 1], computed: 0, waited: 0 }
    for (const t of tasks) {
      const within = Math.min(t.to, at[i]) - Math.max(t.from, at[i - 1])
      if (within <= 0) continue
      // Of a task that is longer than the frame all that it computed may have been in the frame.
      const computed = Math.min(within, t.computed)
      frame.computed += computed
      frame.waited += within - computed
    }
    frames.push(frame)
  }
  return { frames, longestTask: Math.max(...tasks.map((t) => t.computed)) }
}

/** outermost leaves out what is within another. */
function outermost(events) {
  let end = 0
  return events
    .toSorted((a, b) => a.ts - b.ts || b.dur - a.dur)
    .filter((e) => {
      if (e.ts < end) return false
      end = e.ts + e.dur
      return true
    })
}
