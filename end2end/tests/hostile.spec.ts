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
  expect(await page.title()).not.toBe('1');
});

/** Joins as a worker that wants to run code in the operator's browser. */
async function joinHostile(server: Server): Promise<void> {
  const session = randomUUID();
  const joined = await call(server, 'POST', '/v1/worker-sessions', await server.file('token'), {
    protocol: 1,
    version: script,
    worker_uuid: randomUUID(),
    session_id: session,
    host_key: 'h',
    name: markup,
    previous_name: null,
    hostname: script,
    ip: '127.0.0.1',
    port: await freePort(),
    labels: { os: markup, arch: script },
    system_reserved: null,
  });
  const { credential } = (await joined.json()) as { credential: string };
  await call(server, 'PUT', '/v1/worker-status', credential, {
    session_id: session,
    status: {
      os: { name: markup, version: script },
      gpu_devices: [{ index: 0, name: markup, vendor: script, type: 'npu' }],
      problems: [
        { severity: 'error', reason: 'tool_output_unknown', params: { tool: script, output: markup }, age_s: 1 },
      ],
    },
  });
}

async function call(server: Server, method: string, path: string, secret: string, body: unknown): Promise<Response> {
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' };
  const answer = await fetch(server.url + path, { method, headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return answer;
}
