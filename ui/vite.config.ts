import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative, resolve, sep } from 'node:path'
import { gzipSync } from 'node:zlib'
import { svelte } from '@sveltejs/vite-plugin-svelte'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

const root = import.meta.dirname
const top = join(root, '..')

// What the pages are made of, from the top of the repository. internal/web/sources_test.go has the same list.
const sources = [
  'docs/openapi.json',
  'ui/index.html',
  'ui/package.json',
  'ui/package-lock.json',
  'ui/svelte.config.js',
  'ui/tsconfig.json',
  'ui/vite.config.ts',
]

// Files of ui/src that are no sources: types that are made of docs/openapi.json, and tests.
const noSource = /(^ui\/src\/api\/schema\.d\.ts|\.test\.ts)$/

// filesOf lists the files below a directory.
function filesOf(dir: string): string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((f) => f.isFile())
    .map((f) => join(f.parentPath, f.name))
}

// digestOfSources is that of the list that sha256sum would print, ordered by path.
function digestOfSources(): string {
  const own = filesOf(join(root, 'src')).map((path) => relative(top, path).split(sep).join('/'))
  const all = sources.concat(own.filter((name) => !noSource.test(name)))
  const sum = (data: Buffer | string) => createHash('sha256').update(data).digest('hex')
  all.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
  return sum(all.map((name) => `${sum(readFileSync(join(top, name)))}  ${name}\n`).join(''))
}

// complete puts a gzip beside each file that is served, and the digest of the sources beside all.
function complete(): Plugin {
  let dist: string
  return {
    name: 'complete',
    apply: 'build',
    configResolved(config) {
      dist = resolve(root, config.build.outDir)
    },
    closeBundle: {
      order: 'post',
      handler() {
        for (const path of filesOf(dist).filter((f) => /\.(js|css|svg|md)$/.test(f))) {
          writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }))
        }
        writeFileSync(join(dist, 'sources.sha256'), `${digestOfSources()}\n`)
      },
    },
  }
}

// What `npm run dev` asks for is answered by a server at its usual address, or at that of THALWEG_SERVER.
const server = process.env.THALWEG_SERVER ?? 'http://127.0.0.1:8431'
const forwarded = { target: server, changeOrigin: true, headers: { origin: server } }

export default defineConfig({
  base: './',
  plugins: [svelte(), complete()],
  server: { proxy: { '/v1': forwarded, '/start': forwarded, '/oidc': forwarded } },
  build: {
    outDir: '../internal/web/dist',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    sourcemap: false,
    reportCompressedSize: false,
    modulePreload: { polyfill: false },
    license: { fileName: 'licenses.md' },
    rolldownOptions: {
      output: {
        entryFileNames: 'app.js',
        chunkFileNames: 'chunks/[name].js',
        assetFileNames: (file) => (file.names.some((n) => n.endsWith('.css')) ? 'app.css' : 'assets/[name][extname]'),
      },
    },
  },
  test: { include: ['src/**/*.test.ts'], environment: 'node' },
})
