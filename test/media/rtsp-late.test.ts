import t from 'tap'
import { until } from '../support/api.ts'
import { RtspClient } from '../support/rtsp-client.ts'
import { startServer } from '../support/server.ts'

t.test('a client that sets the sound up after the pictures have played gets it from the next PLAY on', async (t) => {
  const server = await startServer(t)
  for (const pauses of [true, false]) {
    const client = await RtspClient.play(server)
    t.teardown(() => client.close())
    await client.gotKeyFrames()
    if (pauses) t.equal((await client.ask('PAUSE')).status, 200)
    await client.setUpSound()
    t.equal((await client.ask('PLAY')).status, 200)
    await until(
      async () => client.soundPackets,
      (packets) => packets > 50,
      'a second of sound',
    )
    await client.gotKeyFrames(client.keyFrames + 1)
  }
})
