// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { execFileSync, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import { type Browser, chromium as engine, type Page } from 'playwright-core';
import { expect } from 'vitest';
import { chromium, host } from './places';

function given(name: string): string {
  const value = process.env[name];
  if (!value) {
    throw new Error(`${name} is not set: run this by make test-headlamp`);
  }
  return value;
}

// A machine that is busy with builds takes a minute to show a page first.
const deadline = 120_000;

export type Person = 'admin' | 'owner';

// Where kubectl proxy answers with the rights of each.
export const proxies: Record<Person, () => string> = {
  admin: () => given('ADMIN_URL'),
  owner: () => given('OWNER_URL'),
};

// kubectl runs as admin, and returns what it prints. What it warns of is part of it.
export function kubectl(...args: string[]): string {
  return execFileSync('bash', ['-c', '"$0" "$@" 2>&1', given('KUBECTL'), ...args], { encoding: 'utf8', timeout: deadline });
}

// proxy runs one more kubectl proxy, as admin. It returns the function that ends it once it has ended.
export async function proxy(port: number): Promise<() => Promise<void>> {
  const args = ['proxy', `--port=${port}`, '--api-prefix=/clusters/main/', `--www=${host}`, '--www-prefix=/'];
  const child = spawn(given('KUBECTL'), args, { stdio: 'ignore' });
  const ended = new Promise<void>(resolve => child.once('exit', () => resolve()));
  const end = () => {
    child.kill('SIGKILL');
    return ended;
  };
  const ready = `http://127.0.0.1:${port}/clusters/main/readyz`;
  const answers = () => fetch(ready, { signal: AbortSignal.timeout(5000) }).then(({ ok }) => ok, () => false);
  try {
    await expect.poll(answers, { timeout: deadline }).toBe(true);
  } catch (error) {
    await end();
    throw error;
  }
  return end;
}

export function launch(): Promise<Browser> {
  return engine.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
}

export interface View {
  width: number;
  theme: 'light' | 'dark';
}

export const wide: View = { width: 1600, theme: 'light' };

// visit opens a page of Headlamp. Headlamp's server answers each path of a page with the same document; kubectl proxy
// doesn't, so the browser is given it.
export async function visit(browser: Browser, base: string, path: string, view: View = wide): Promise<Page> {
  const context = await browser.newContext({
    viewport: { width: view.width, height: 1000 },
    reducedMotion: 'reduce',
    colorScheme: view.theme,
    locale: 'en-GB',
  });
  context.setDefaultTimeout(deadline);
  await context.route(url => url.pathname.startsWith('/c/'), route => route.fulfill({ path: `${host}/index.html`, contentType: 'text/html' }));
  // Headlamp's icons come from the Internet, unless they are in its own bundle.
  await context.route(url => url.hostname !== '127.0.0.1', route => route.abort());
  await context.addInitScript(theme => localStorage.setItem('headlampThemePreference', theme), view.theme);
  const page = await context.newPage();
  await page.goto(`${base}/c/main${path}`, { waitUntil: 'commit' });
  return page;
}

// goTo goes to another page of Headlamp in the same window.
export async function goTo(page: Page, path: string): Promise<void> {
  await page.goto(new URL(`/c/main${path}`, page.url()).href, { waitUntil: 'commit' });
}

// shows waits until the page has the text, wherever it is.
export async function shows(page: Page, text: string | RegExp): Promise<void> {
  await page.getByText(text).first().waitFor();
}

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

// violations are what axe finds. Pages of Headlamp's own are Headlamp's to mend; of them, and of its sidebar, the
// plugin's part is looked at.
export async function violations(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: axe });
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (context: unknown) => Promise<AxeResults> } };
    return (await axe.run({ include: [['[data-shared-quota]']] })).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join('\n')}`);
  });
}
