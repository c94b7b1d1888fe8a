import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import t, { type Test } from 'tap'
import { Bus } from '../../../app/server/bus.ts'
import { DeviceStorage } from '../../../app/server/files/index.ts'
import { Places, type RecordingStorage, USUAL_STORAGE } from '../../../app/server/recording/index.ts'
import { Store } from '../../../app/server/store/index.ts'
import { scratchFolder } from '../../support/scratch.ts'

const silent = pino({ level: 'silent' })

async function rig(t: Test) {
  const folder = scratchFolder(t, 'places')
  const media = join(folder, 'media-root')
  mkdirSync(join(media, 'card'), { recursive: true })
  writeFileSync(join(media, 'card/.camera-storage'), '')
  mkdirSync(join(media, 'empty'))
  const store = new Store(join(folder, 'db'), silent)
  await store.start()
  const storage = new DeviceStorage(join(folder, 'data'), media)
  storage.start()
  const bus = new Bus()
  const now = { recording: false }
  const places = new Places(store, storage, bus, silent, () => now.recording)
  places.start()
  t.teardown(async () => {
    places.stop()
    await store.stop()
  })
  const set = async (change: Partial<RecordingStorage>) => {
    const value = { ...USUAL_STORAGE, ...change }
    await places.check(value)
    bus.emit('state', { key: 'recordingStorage', value })
  }
  return { folder, media, storage, places, now, set }
}

t.test('the primary place moves to another medium', async (t) => {
  const { storage, places, media, set } = await rig(t)
  t.equal(storage.recordings, '/media/data/recordings')
  await set({ primary: '/media/card/video', backup: '', network: '/media/network/nas' })
  t.equal(storage.recordings, '/media/card/video')
  t.equal(storage.hostPath('/media/card/video/a.mp4'), join(media, 'card/video/a.mp4'))
  t.same(readdirSync(join(media, 'card')).sort(), ['.camera-storage', 'video'], 'nothing of the check is left')
  t.ok((storage.space(storage.recordings)?.total ?? 0) > 0)
  t.equal(places.copyPlace('backup'), undefined)
  t.equal(places.copyPlace('network'), '/media/network/nas')
})

t.test('what cannot be used is refused by name', async (t) => {
  const { folder, media, now, set, storage } = await rig(t)
  symlinkSync(folder, join(media, 'card/out'))
  const refused: [Partial<RecordingStorage>, string][] = [
    [{ primary: '/media/card/../data' }, 'primary'],
    [{ primary: '/etc' }, 'primary'],
    [{ primary: '/media' }, 'primary'],
    [{ primary: '/media/data' }, 'primary'],
    [{ primary: '/media/data/.uploads/x' }, 'primary'],
    [{ primary: '' }, 'primary'],
    [{ primary: '/media/empty/x' }, 'primary'],
    [{ primary: '/media/absent/x' }, 'primary'],
    [{ primary: '/media/card/out/x' }, 'primary'],
    [{ primary: '/media/card/.camera-storage' }, 'primary'],
    [{ backup: '/media/data/recordings/copies' }, 'backup'],
    [{ backup: '/home/x' }, 'backup'],
    [{ network: 'smb://nas/share' }, 'network'],
    [{ network: '/media/backup/recordings' }, 'network'],
  ]
  for (const [change, place] of refused) {
    await t.rejects(set(change), { code: 'UNSUPPORTED_SETTING', details: `recordingStorage.${place}` }, JSON.stringify(change))
  }
  t.same(readdirSync(join(media, 'empty')), [], 'nothing is written into an empty mount point')
  now.recording = true
  await t.rejects(set({ primary: '/media/card/video' }), { code: 'RECORDING_IN_PROGRESS' })
  await set({})
  t.equal(storage.recordings, '/media/data/recordings')
})

t.test('a medium that was pulled out has no space, and has it again when it is back', async (t) => {
  const { media, storage, set } = await rig(t)
  await set({ primary: '/media/card/video' })
  renameSync(join(media, 'card'), join(media, 'pulled'))
  t.equal(storage.space(storage.recordings), null)
  mkdirSync(join(media, 'card'))
  t.equal(storage.space(storage.recordings), null, 'the empty mount point is no medium')
  rmSync(join(media, 'card'), { recursive: true })
  renameSync(join(media, 'pulled'), join(media, 'card'))
  t.ok(storage.space(storage.recordings))
})
