// whenRenewed calls say once a part of the application cannot be loaded: the server is away, or has been renewed since
// the page was opened, and has other files. The page is to be loaded again, when whoever reads it has kept what they
// typed.
export function whenRenewed(say: () => void, page: EventTarget = window): void {
  page.addEventListener('vite:preloadError', (e) => {
    e.preventDefault()
    say()
  })
}
