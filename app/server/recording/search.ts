/**
 * Lists that no index answers: by text, by tags, by size and length. They look at the entries themselves, at so many in one request and in
 * turns with everything else; where that is not enough they say so, and where to go on.
 */
import { ApiError, InvalidRequest } from '../errors.ts'
import { inTurns } from '../turns.ts'
import type { Catalogue, ListQuery, Page } from './catalogue.ts'
import { comparePositions, isBehind, positionOf } from './indexes.ts'
import type { RecordingRow } from './row.ts'
import type { Tags } from './tags.ts'

export const SORTS = ['newest', 'oldest', 'largest', 'smallest', 'longest', 'shortest'] as const
export type Sort = (typeof SORTS)[number]

export interface SearchQuery extends Omit<ListQuery, 'oldestFirst'> {
  /** Part of the file name, or of the title or note of a tag. */
  readonly text?: string
  /** The name of a category, or part of a tag's title. */
  readonly tag?: string
  readonly sort?: Sort
}

export interface SearchPage extends Page {
  /** False: `total` counts what was found until the request had looked at enough. */
  readonly exact: boolean
}

type Test = (row: RecordingRow) => boolean

/** Entries that one request looks at. */
export const MAX_EXAMINED = 20_000
const MAX_WAITING = 16

const BY: Partial<Record<Sort, (a: RecordingRow, b: RecordingRow) => number>> = {
  largest: (a, b) => b.size - a.size,
  smallest: (a, b) => a.size - b.size,
  longest: (a, b) => b.duration - a.duration,
  shortest: (a, b) => a.duration - b.duration,
}

export class Search {
  private turn: Promise<unknown> = Promise.resolve()
  private waiting = 0

  constructor(
    private readonly catalogue: Catalogue,
    private readonly tags: Tags,
    private readonly most = MAX_EXAMINED,
  ) {}

  async find({ sort = 'newest', ...query }: SearchQuery, signal?: AbortSignal): Promise<SearchPage> {
    const oldestFirst = sort === 'oldest'
    const by = BY[sort]
    const test = this.test(query)
    const { text, tag, ...plain } = query
    const list = { ...plain, oldestFirst, ...(tag === undefined || plain.tagged === false ? {} : { tagged: true }) }
    if (!by && !test) return { ...this.catalogue.list(list), exact: true }
    return this.inTurn(() => {
      const wanted = test ?? (() => true)
      const known = this.ofCategory(tag, list)
      if (by) return this.sorted(list, known, wanted, by, signal)
      return this.scan(list, known, wanted, signal)
    })
  }

  /** One at a time: each takes its share of the event loop. */
  private async inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting >= MAX_WAITING)
      throw new ApiError('SERVICE_UNAVAILABLE', 'Too many searches at once', '', { 'Retry-After': '2' })
    this.waiting += 1
    const result = this.turn.then(work).finally(() => {
      this.waiting -= 1
    })
    this.turn = result.catch(() => undefined)
    return result
  }

  /** What the entries themselves must have; undefined: nothing. */
  private test({ text, tag }: Pick<SearchQuery, 'text' | 'tag'>): Test | undefined {
    const tests: Test[] = []
    if (tag !== undefined) {
      const category = this.tags.categories.byName(tag)?.id
      const title = folded(tag)
      tests.push((row) =>
        this.tagsOf(row).some((mark) =>
          category === undefined ? folded(mark.title).includes(title) : mark.category === category,
        ),
      )
    }
    if (text !== undefined) {
      const part = folded(text)
      tests.push(
        (row) =>
          folded(row.filename).includes(part) ||
          this.tagsOf(row).some(({ title, note }) => folded(title).includes(part) || folded(note).includes(part)),
      )
    }
    return tests.length === 0 ? undefined : (row) => tests.every((test) => test(row))
  }

  private tagsOf(row: RecordingRow) {
    return row.tag_markers > 0 ? this.tags.list(row.id) : []
  }

  /** The recordings of a category of few tags, looked up rather than looked for; in no order, each tested by the filter. */
  private ofCategory(tag: string | undefined, list: ListQuery): Generator<RecordingRow> | null {
    const category = tag === undefined ? undefined : this.tags.categories.byName(tag)
    const ids = category ? this.tags.recordingsIn(category.id, this.most) : null
    if (!ids) return null
    const { catalogue } = this
    return (function* () {
      for (const id of ids) {
        const row = catalogue.get(id)
        if (row && catalogue.matches(row, list)) yield row
      }
    })()
  }

  private async scan(
    list: ListQuery,
    known: Iterable<RecordingRow> | null,
    wanted: Test,
    signal?: AbortSignal,
  ): Promise<SearchPage> {
    const { oldestFirst = false, after, limit } = list
    const order = (a: RecordingRow, b: RecordingRow) => comparePositions(positionOf(a), positionOf(b)) * (oldestFirst ? 1 : -1)
    const source = known
      ? (await gather(known, () => true, signal)).sort(order).filter((row) => !after || isBehind(row, after, oldestFirst))
      : this.catalogue.walk(list, oldestFirst, after)
    const rows: RecordingRow[] = []
    let [found, examined] = [0, 0]
    let last: RecordingRow | undefined
    for await (const row of inTurns(source)) {
      if (examined === this.most || signal?.aborted) break
      examined += 1
      last = row
      if (!wanted(row)) continue
      found += 1
      if (found > list.offset && rows.length < limit) rows.push(row)
      if (found > list.offset + limit && after) break
    }
    const exact = examined < this.most && !after
    const full = rows.length === limit
    const more = full ? found > list.offset + limit || examined === this.most : examined === this.most
    const place = full ? rows.at(-1) : last
    return { rows, total: found, exact, next: more && place ? positionOf(place) : null }
  }

  private async sorted(
    list: ListQuery,
    known: Iterable<RecordingRow> | null,
    wanted: Test,
    by: (a: RecordingRow, b: RecordingRow) => number,
    signal?: AbortSignal,
  ): Promise<SearchPage> {
    if (!known) {
      const candidates = this.catalogue.count(list)
      if (candidates > this.most) {
        throw new InvalidRequest(
          'query.sort',
          `${candidates} entries would have to be sorted, ${this.most} may be: narrow the range`,
        )
      }
    }
    const rows = await gather(known ?? this.catalogue.walk(list, false), wanted, signal)
    rows.sort(by)
    return { rows: rows.slice(list.offset, list.offset + list.limit), total: rows.length, exact: true, next: null }
  }
}

async function gather(source: Iterable<RecordingRow>, wanted: Test, signal?: AbortSignal): Promise<RecordingRow[]> {
  const rows: RecordingRow[] = []
  for await (const row of inTurns(source)) {
    if (signal?.aborted) break
    if (wanted(row)) rows.push(row)
  }
  return rows
}

function folded(text: string): string {
  return text.normalize('NFKC').toLowerCase()
}
