// What a status looks like: a shape, a word and a colour, so that none of them is needed alone.

export type Shape = "check" | "cross" | "pause" | "play" | "ring" | "square" | "hand" | "bar";

export interface Look {
  shape: Shape;
  word: string;
  tone: "done" | "busy" | "failed" | "gate" | "open";
}

const looks: Record<string, Look> = {
  complete: { shape: "check", word: "complete", tone: "done" },
  succeeded: { shape: "check", word: "done", tone: "done" },
  running: { shape: "play", word: "running", tone: "busy" },
  claimed: { shape: "play", word: "at work", tone: "busy" },
  waiting: { shape: "hand", word: "waiting", tone: "gate" },
  failed: { shape: "cross", word: "failed", tone: "failed" },
  stopped: { shape: "square", word: "stopped", tone: "open" },
  paused: { shape: "pause", word: "paused", tone: "open" },
  pending: { shape: "ring", word: "not begun", tone: "open" },
  released: { shape: "ring", word: "given back", tone: "open" },
  lost: { shape: "bar", word: "lost", tone: "failed" },
  invalidated: { shape: "bar", word: "invalidated", tone: "failed" },
};

export function look(status: string): Look {
  return looks[status] ?? { shape: "ring", word: status, tone: "open" };
}

/** orders says which orders a run of a status takes. */
export function orders(status: string): string[] {
  switch (status) {
    case "running":
      return ["pause", "stop"];
    case "waiting":
      return ["stop"];
    case "paused":
      return ["resume", "stop"];
    case "failed":
    case "stopped":
      return ["retry", "resume", "invalidate"];
    case "complete":
      return ["retry", "invalidate"];
  }
  return [];
}
