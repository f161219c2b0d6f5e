// A real `thalweg serve` over a state directory.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { environment, program } from './state.mjs'

const configuration = `version: 1
workspaces:
  main: {scripts: ., parameters: true}
limits: {user_requests_per_second: 10000, user_requests_burst: 10000, address_requests_per_second: 10000, address_requests_burst: 10000}
`

// Server answers at url until it is stopped or killed.
export class Server {
  // start starts a server over a state directory; it also works on runs. listen: an address of before, to come again.
  static async start(state, { listen = '127.0.0.1:0', flags = ['--worker'], config = configuration } = {}) {
    return Server.run(state, 'serve', '--listen', listen, '--config', state.write('serve.yaml', config), ...flags)
  }

  // run starts a command that serves a state directory.
  static async run(state, ...args) {
    const s = new Server()
    s.state = state
    s.process = spawn(program, args, { cwd: state.dir, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    s.ended = once(s.process, 'exit')
    process.once('exit', () => s.process.kill('SIGKILL'))
    s.output = ''
    await new Promise((found, fail) => {
      const read = (data) => {
        s.output += data
        const said = /to sign in: (\S+)/.exec(s.output)
        if (said) {
          s.signIn = said[1]
          s.url = new URL(said[1]).origin
          found()
        }
      }
      s.process.stdout.on('data', read)
      s.process.stderr.on('data', read)
      s.process.on('error', fail)
      s.ended.then(([code]) => fail(new Error(`thalweg serve ended with ${code}: ${s.output}`)))
    })
    return s
  }

  // stop tells the server to end, and waits.
  async stop() {
    this.process.kill('SIGTERM')
    await this.ended
  }

  // kill ends the server as a loss of power does.
  async kill() {
    this.process.kill('SIGKILL')
    await this.ended
  }

  // again starts another server at the same address.
  again(options = {}) {
    return Server.start(this.state, { listen: new URL(this.url).host, ...options })
  }

  // request asks the API as whoever has started the server, and returns the answer's body.
  async request(method, path, body) {
    this.cookie ??= await this.#session({ start: this.signIn.split('#')[1] })
    const headers = { Cookie: this.cookie, 'Content-Type': 'application/json' }
    const answer = await fetch(this.url + path, { method, headers, body: body && JSON.stringify(body) })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text && JSON.parse(text)
  }

  // user makes a user with grants, or gives one others, and returns what signs them in.
  async user(name, ...grants) {
    const password = 'correct horse battery'
    await this.request('PUT', `/v1/users/${name}`, { password, grants })
    return { name, password }
  }

  async #session(body) {
    const headers = { 'Content-Type': 'application/json' }
    const answer = await fetch(`${this.url}/v1/login`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`login: ${answer.status} ${await answer.text()}`)
    return answer.headers.get('set-cookie').split(';')[0]
  }

  // sessionOf returns the cookie of a new session of a user.
  sessionOf(user) {
    return this.#session(user)
  }
}
