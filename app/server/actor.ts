/**
 * On whose behalf the running code acts. Set around each change that comes from outside, so that an event deep in a domain can say who caused
 * it without every function handing it on. Nobody: the device itself (a schedule, a crash, a full disk).
 */
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Actor {
  readonly username: string
  /** Where the request came from. */
  readonly address: string
}

const current = new AsyncLocalStorage<Actor>()

export function actingAs<T>(actor: Actor, work: () => T): T {
  return current.run(actor, work)
}

/** For what comes of itself later on, such as the end of a period of grace. */
export function actingAsDevice<T>(work: () => T): T {
  return current.exit(work)
}

export function currentActor(): Actor | undefined {
  return current.getStore()
}
