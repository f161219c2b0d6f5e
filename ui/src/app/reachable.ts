/** reachable lets the keyboard come to an element while it scrolls; for {@attach}. */
export function reachable(element: HTMLElement): () => void {
  const look = () => {
    const scrolls = element.scrollWidth > element.clientWidth || element.scrollHeight > element.clientHeight
    if (scrolls) element.tabIndex = 0
    else element.removeAttribute('tabindex')
  }
  // It is called for the first time once the page is laid out: to ask before would lay it out for each element.
  const sizes = new ResizeObserver(look)
  sizes.observe(element)
  if (element.firstElementChild) sizes.observe(element.firstElementChild)
  return () => sizes.disconnect()
}
