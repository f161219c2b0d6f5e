// What a page shows is loaded, kept while it is loaded again, and loaded again when the server tells of a change.
import { untrack } from "svelte";
import type { Failure } from "../api/client";
import { type Line, live } from "./live.svelte";

const pauseMS = 300; // between two loads of the same
const idleMS = 30_000; // after which it is loaded even if nothing was heard

/** Loaded is a value of the server, as it was `at`. */
export class Loaded<T> {
  value = $state.raw<T>();
  failure = $state.raw<Failure>();
  at = $state(0);
  /** stale: what is shown was loaded with other parameters than those of the address. */
  stale = $state(false);
  #load: () => Promise<T> = () => Promise.reject();
  #version = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #busy = false;
  #again = false;

  /** begin loads with another function. */
  begin(load: () => Promise<T>): void {
    this.#load = load;
    this.#version++;
    this.stale = this.value !== undefined;
    this.#busy = false;
    void this.now();
  }

  /** soon loads it again, at most so often. */
  soon = (): void => {
    if (this.#busy) this.#again = true;
    else {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(this.now, Math.max(0, this.at + pauseMS - Date.now()));
    }
  };

  now = async (): Promise<void> => {
    clearTimeout(this.#timer);
    const version = this.#version;
    this.#busy = true;
    this.#again = false;
    try {
      const value = await this.#load();
      if (version !== this.#version) return;
      this.value = value;
      this.failure = undefined;
      this.stale = false;
    } catch (e) {
      if (version !== this.#version) return;
      this.failure = e as Failure;
    }
    this.#busy = false;
    this.at = Date.now();
    if (this.#again) this.soon();
    else this.#timer = setTimeout(this.now, idleMS);
  };

  end(): void {
    this.#version++;
    clearTimeout(this.#timer);
  }
}

/** load loads a value while the component lives, and anew when what `make` reads changes or `topics` tell of a change. */
export function load<T>(
  make: () => () => Promise<T>,
  topics: () => string[] = () => [],
  when: (line: Line) => boolean = () => true,
): Loaded<T> {
  const it = new Loaded<T>();
  $effect(() => {
    const one = make();
    untrack(() => it.begin(one));
    return () => it.end();
  });
  $effect(() => live.on(topics(), (line) => when(line) && it.soon()));
  return it;
}
