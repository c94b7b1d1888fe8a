import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { programFolder } from '../../app/server/program.ts'

t.test('the folder is that of the file behind the path', async (t) => {
  const root = t.testdir()
  mkdirSync(join(root, 'bin'))
  writeFileSync(join(root, 'bin', 'camera-server'), '')
  symlinkSync('bin/camera-server', join(root, 'link'))
  t.equal(programFolder(join(root, 'bin', 'camera-server'), '/lib/ld.so'), join(root, 'bin'))
  t.equal(programFolder(join(root, 'link'), '/lib/ld.so'), join(root, 'bin'))
})

t.test('a bare name, none, or a path that is none: the folder of the executable', async (t) => {
  for (const name of ['camera-server', undefined, '/nowhere/camera-server']) {
    t.equal(programFolder(name, '/usr/bin/camera-server'), '/usr/bin')
  }
})
