// Commands, as they are said beside what a page does.

/** command writes words so that a shell takes each as one. */
export function command(...words: (string | number)[]): string {
  return words.map((w) => (/^[\w./:=@,+-]+$/.test(`${w}`) ? `${w}` : `'${`${w}`.replaceAll("'", `'\\''`)}'`)).join(' ')
}
