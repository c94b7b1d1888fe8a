/** The data partition was beyond repair and was made anew before this start, empty: that is told once. */
import type { Bus } from '../bus.ts'
import type { Logger } from '../log.ts'
import type { Store } from '../store/index.ts'

const KEY = 'dataRecreatedTold'

export class DataLoss {
  constructor(
    private readonly store: Store,
    private readonly bus: Bus,
    private readonly log: Logger,
  ) {}

  /** `recreated`: when, ISO 8601; null: never. What was told is forgotten with the data: the next time is told again, whatever the clock says. */
  tell(recreated: string | null): void {
    const table = this.store.table<string, unknown>('settings')
    if (recreated === null || table.get(KEY) === recreated) return
    this.store.transaction(() => table.put(KEY, recreated))
    this.log.error({ recreated }, 'the data partition was beyond repair and was made anew: what was on it is lost')
    this.bus.publish('alert', 'data_recreated', { recreated })
  }
}
