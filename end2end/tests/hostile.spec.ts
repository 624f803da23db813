import { randomUUID } from 'node:crypto';
import { freePort, type Server } from '../support/lab.ts';
import { card } from '../support/fleet-page.ts';
import { expect, hydrated, logIn, test } from '../support/test.ts';

const markup = '<img src=x onerror="document.title=1">';
const script = '"><script>document.title=1</script>';

test('what a worker calls itself and its devices is shown as text, whatever it is', async ({ page, lab }) => {
  const server = await lab.server();
  await joinHostile(server);
  await logIn(page, server.url);
  await expect(card(page, markup)).toContainText(script);
  await expect(card(page, markup)).toContainText(`1 × ${markup}`);
  await card(page, markup).getByRole('link', { name: markup }).click();
  await hydrated(page);
  await expect(page.getByRole('heading', { name: markup })).toBeVisible();
  await expect(page.getByText(`printed something that this version does not understand: ${markup}`).first()).toBeVisible();

  await page.reload();
  await hydrated(page);
  await expect(page.locator('img')).toHaveCount(0);
  await page.goto(`${server.url}/devices`);
  await hydrated(page);
  await expect(page.getByRole('row', { name: markup })).toContainText(script);
  await expect(page.locator('img')).toHaveCount(0);
  expect(await page.title()).not.toBe('1');
});

/** Joins, as GPUStack 0.7 does, as a worker that wants to run code in the operator's browser. */
async function joinHostile(server: Server): Promise<void> {
  const login = `system/worker/127.0.0.1:${await server.file('token')}`;
  const answer = await fetch(`${server.url}/v1/workers`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(login)}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      worker_uuid: randomUUID(),
      name: markup,
      hostname: script,
      ip: '127.0.0.1',
      port: await freePort(),
      labels: { os: markup, arch: script },
      status: {
        os: { name: markup, version: script },
        gpu_devices: [{ index: 0, name: markup, vendor: script, type: 'npu' }],
        problems: [
          { severity: 'error', reason: 'tool_output_unknown', params: { tool: script, output: markup }, age_s: 1 },
        ],
      },
    }),
  });
  if (!answer.ok) throw new Error(`joining was answered ${answer.status}: ${await answer.text()}`);
}
