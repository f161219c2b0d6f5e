import { api, data } from '../api/client'

/** before is the number of the latest complete run of a script before a run, to compare with. */
export async function before(workspace: string, script: string, run: number): Promise<number | undefined> {
  const query = { script, status: 'complete' as const, limit: 20 }
  const page = await data(api.GET('/v1/workspaces/{workspace}/runs', { params: { path: { workspace }, query } }))
  return (page.runs ?? []).find((r) => r.script === script && r.run < run)?.run
}
