// The client of the API: typed by docs/openapi.json, with problems (RFC 9457) as errors.
import createClient, { type Middleware } from "openapi-fetch";
import type { Problem, paths } from "./schema";

export type { Problem };

/** Failure is a request that the server refused, or that did not reach it. */
export class Failure extends Error {
  constructor(
    readonly problem: Problem | undefined,
    message: string,
  ) {
    super(message);
  }

  /** status is that of HTTP; 0: no answer came. */
  get status(): number {
    return this.problem?.status ?? 0;
  }
}

/** whenRefused is called when a request needs a login. */
let whenRefused = (): void => {};

export function onRefused(call: () => void): void {
  whenRefused = call;
}

const failures: Middleware = {
  async onResponse({ response, request }) {
    if (response.ok || response.status === 304) return;
    const problem = await problemOf(response);
    if (response.status === 401 && !request.url.endsWith("/v1/login")) whenRefused();
    throw new Failure(problem, problem.detail);
  },
  onError() {
    return new Failure(undefined, "The server does not answer.");
  },
};

async function problemOf(response: Response): Promise<Problem> {
  const fallback = {
    type: "about:blank",
    title: response.statusText,
    status: response.status,
    kind: "environment",
    detail: `The server answered ${response.status} ${response.statusText}.`,
  };
  try {
    return { ...fallback, ...((await response.json()) as Partial<Problem>) };
  } catch {
    return fallback;
  }
}

export const api = createClient<paths>({ baseUrl: "/" });
api.use(failures);

/** data returns what an operation answered. */
export async function data<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}
