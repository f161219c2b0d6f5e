// The time, for what is written as "5 min ago" and for what is under way.
class Clock {
  now = $state(Date.now());

  /** run ticks every second until the returned function is called. */
  run(): () => void {
    const t = setInterval(() => {
      if (!document.hidden) this.now = Date.now();
    }, 1000);
    return () => clearInterval(t);
  }
}

export const clock = new Clock();
