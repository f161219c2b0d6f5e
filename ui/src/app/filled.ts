/** pagesMax is how many pages are asked for at once: of the runs a page looks at 5,000. */
const pagesMax = 20

/**
 * filled asks for pages, from a cursor on, until one has something, or is the last: the server looks at so many runs for
 * each, and few may be like a filter. wanted: whether somebody still waits for it.
 */
export async function filled<P extends { next?: string }>(
  ask: (cursor: string) => Promise<P>,
  cursor: string,
  has: (page: P) => boolean,
  wanted: () => boolean,
): Promise<P> {
  for (let pages = 1; ; pages++) {
    const page = await ask(cursor)
    if (has(page) || !page.next || pages === pagesMax || !wanted()) return page
    cursor = page.next
  }
}
