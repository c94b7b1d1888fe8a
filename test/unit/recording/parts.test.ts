import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { countParts, freeRecordingName, partIndex, partName } from '../../../app/server/recording/parts.ts'
import { scratchFolder } from '../../support/scratch.ts'

t.test('names of parts lead there and back', async (t) => {
  t.equal(partName('/a/b/walk.mp4', 1), '/a/b/walk.mp4')
  t.equal(partName('/a/b/walk.mp4', 12), '/a/b/walk.part12.mp4')
  for (const index of [1, 2, 9, 10, 4711]) t.equal(partIndex('/a/walk.avi', partName('/a/walk.avi', index)), index)
  for (const other of ['/a/walk.part1.avi', '/a/walk.part02.avi', '/a/walk.part2.mp4', '/a/walker.part2.avi', '/b/walk.avi']) {
    t.equal(partIndex('/a/walk.avi', other), null, other)
  }
})

t.test('a name is free when none of its parts is taken either', async (t) => {
  const folder = scratchFolder(t, 'parts')
  const free = (claimed = new Set<string>()) => freeRecordingName(folder, 'walk', 'mp4', claimed)
  t.equal(free(), 'walk.mp4')
  writeFileSync(join(folder, 'walk.part3.mp4'), '')
  t.equal(free(), 'walk_1.mp4', 'left behind by something')
  writeFileSync(join(folder, 'walk_1.mp4'), '')
  t.equal(free(), 'walk_2.mp4')
  t.equal(free(new Set([join(folder, 'walk_2.mp4')])), 'walk_3.mp4')
  t.equal(countParts(join(folder, 'walk_1.mp4')), 1)
  writeFileSync(join(folder, 'walk_1.part2.mp4'), '')
  writeFileSync(join(folder, 'walk_1.part4.mp4'), '')
  t.equal(countParts(join(folder, 'walk_1.mp4')), 2, 'the one behind a gap is another matter')
})
