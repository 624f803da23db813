import { Api, until } from '../support/api.ts';
import { row } from '../support/fleet-page.ts';
import { expect, logIn, test } from '../support/test.ts';

// the browser reports that it cannot reach the server meanwhile, and sends a question that was cut off once more by itself: the
// next server knows nothing of the former one's stream
test.use({ expectedComplaints: [/net::ERR_|404 \(Not Found\) \(.*\/v1\/events\/\w+\/watch\)/] });

test('a server that is killed under load and started again knows everybody and judges nobody too early', async ({ page, lab }) => {
  test.setTimeout(180_000);
  const fleetSize = 200;
  const server = await lab.server({ args: ['--worker-offline-timeout', '30'] });
  await lab.fleet(server, fleetSize);
  const gone = await lab.worker(server, { name: 'gone' });
  const before = await Api.logIn(server);
  await until('everybody is Ready', async () => {
    const all = await before.workers();
    return all.length === fleetSize + 1 && all.every(({ state }) => state === 'ready') ? true : undefined;
  }, 60_000);
  await logIn(page, server.url);

  await gone.program.kill();
  await server.program.kill();
  const again = await lab.server({
    args: ['--worker-offline-timeout', '30'],
    port: server.port,
    dataDir: server.dataDir,
  });
  const api = await Api.logIn(again);
  const first = await api.workers();
  expect(first).toHaveLength(fleetSize + 1);
  // the one that is gone for good is the last to be judged, and nobody else ever is
  await until('the worker that is gone is judged', async () => {
    const all = await api.workers();
    const lost = all.filter(({ state }) => state === 'not_ready').map(({ name }) => name);
    expect(lost.filter(name => name !== 'gone')).toEqual([]);
    return lost.length === 1 ? true : undefined;
  }, 90_000);
  const all = await api.workers();
  expect(all.filter(({ state }) => state === 'ready')).toHaveLength(fleetSize);

  // the page that was open all the time has found the server again by itself
  await page.getByRole('searchbox').fill('gone');
  await expect(row(page, 'gone')).toContainText('Not ready');
});
