// Who looks, and what they may.
import { api, data, type Failure, onRefused } from '../api/client'
import type { Whoami, Workspace } from '../api/schema'

class Session {
  me = $state<Whoami>()
  workspaces = $state<Workspace[]>([])
  /** known: the server has said who asks, or that nobody does. */
  known = $state(false)
  /** expired: there was a session, and a page waits below the login. */
  expired = $state(false)
  unreachable = $state('')

  async load(): Promise<void> {
    onRefused(() => {
      this.expired = this.me !== undefined
      if (!this.expired) this.known = true
    })
    try {
      const [me, workspaces] = await Promise.all([data(api.GET('/v1/me')), data(api.GET('/v1/workspaces'))])
      this.workspaces = workspaces ?? []
      this.me = me
      this.expired = false
      this.unreachable = ''
    } catch (e) {
      // Who was there signs in again above the page, which keeps what was written on it.
      if ((e as Failure).status === 401) this.expired = this.me !== undefined
      else this.unreachable = (e as Error).message
    }
    this.known = true
  }

  async login(user: string, password: string): Promise<void> {
    await data(api.POST('/v1/login', { body: { name: user, password } }))
    await this.load()
  }

  async logout(): Promise<void> {
    await data(api.POST('/v1/logout', {}))
    localStorage.clear()
    location.assign('/')
  }

  may(workspace: string, permission: string): boolean {
    return this.workspaces.some((w) => w.workspace === workspace && w.may?.includes(permission))
  }
}

export const session = new Session()
