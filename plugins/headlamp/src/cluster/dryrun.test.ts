// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { type Api, mostCharacters, mostObjects, readManifests, readWarnings, type Reply, tryManifests } from './dryrun';

const pod = 'apiVersion: v1\nkind: Pod\nmetadata: {name: web}\n';

describe('what is pasted', () => {
  it('may be several documents, lists and JSON', () => {
    const text = `${pod}---\n---\n{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"b"}},{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"c-"}}]}`;
    expect(readManifests(text).map(({ kind }) => kind)).toEqual(['Pod', 'Deployment', 'Pod']);
  });

  it('keeps text that looks like a time', () => {
    expect(JSON.stringify(readManifests(`${pod}spec: {at: 2026-01-01}`))).toContain('"2026-01-01"');
  });

  // The figures are those of sigs.k8s.io/yaml, by which kubectl reads.
  it.each([
    ['0644', 420],
    ['-0644', -420],
    ['06_44', 420],
    ['0o644', 420],
    ['0899', 899],
    ['00', 0],
    ['0', 0],
    ['+07', 7],
    ['0x1F', 31],
    ['644', 644],
    ['"0644"', '0644'],
    ['yes', true],
    ['On', true],
    ['true', true],
    ['n', false],
    ['off', false],
    ['FALSE', false],
    ['"yes"', 'yes'],
    ['yEs', 'yEs'],
    ['1:30', '1:30'],
    ['~', null],
  ])('is read as kubectl reads it: %s', (text, value) => {
    expect(readManifests(`${pod}spec: {at: ${text}}`)).toMatchObject([{ spec: { at: value } }]);
  });

  it('may have merge keys', () => {
    expect(readManifests(`${pod}spec:\n  a: &a {m: 1, o: 2}\n  b: {<<: *a, o: 3}`)).toMatchObject([{ spec: { b: { m: 1, o: 3 } } }]);
    expect(JSON.stringify(readManifests(`${pod}spec:\n  a: &a {m: 1}\n  b: {<<: *a}`))).not.toContain('<<');
  });

  it.each([
    ['nothing', '  \n---\n', 'no manifest'],
    ['no YAML', 'a: [', 'not YAML'],
    ['a string', 'hello', 'Object 1 is no manifest'],
    ['a number in a list', `${pod}---\n[1]`, 'Object 2 is no manifest'],
    ['no name', 'apiVersion: v1\nkind: Pod\nmetadata: {}', 'a Pod, has no metadata.name'],
    ['too many', Array.from({ length: mostObjects + 1 }, () => pod).join('---\n'), 'Paste 50 at most'],
    ['too much', ' '.repeat(mostCharacters + 1), 'Paste less'],
  ])('is refused: %s', (_, text, message) => {
    expect(() => readManifests(text)).toThrow(message);
  });
});

describe('a dry run', () => {
  const sent: { method: string; path: string; query: Record<string, string>; body: string }[] = [];
  function api(reply: () => Reply): Api {
    sent.length = 0;
    return {
      discover: async path => {
        await Promise.resolve();
        return path === '/api/v1'
          ? [
              { name: 'pods/eviction', kind: 'Pod', namespaced: true },
              { name: 'pods', kind: 'Pod', namespaced: true },
              { name: 'namespaces', kind: 'Namespace', namespaced: false },
            ]
          : [];
      },
      send: async (method, path, query, body) => {
        await Promise.resolve();
        sent.push({ method, path, query, body });
        return reply();
      },
    };
  }
  const silent = () => ({ warning: null, hidden: false });

  it('applies by name, in the namespace that is chosen or that the object names', async () => {
    const manifests = readManifests(`${pod}---\napiVersion: v1\nkind: Pod\nmetadata: {name: b, namespace: other}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: "n"}`);
    const answers = await tryManifests(api(silent), manifests, 'shop');
    expect(answers.map(({ object, result }) => [object, result])).toEqual([
      ['Pod shop/web', 'fits'],
      ['Pod other/b', 'fits'],
      ['Namespace n', 'fits'],
    ]);
    expect(sent.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'PATCH /api/v1/namespaces/shop/pods/web',
      'PATCH /api/v1/namespaces/other/pods/b',
      'PATCH /api/v1/namespaces/n',
    ]);
    for (const { query } of sent) {
      expect(query).toMatchObject({ dryRun: 'All', fieldValidation: 'Warn', force: 'true' });
    }
    expect(JSON.parse(sent[0]?.body ?? '')).toMatchObject({ metadata: { name: 'web', namespace: 'shop' } });
  });

  it('creates what has no name yet', async () => {
    await tryManifests(api(silent), readManifests('apiVersion: v1\nkind: Pod\nmetadata: {generateName: c-}'), 'shop');
    expect(sent).toMatchObject([{ method: 'POST', path: '/api/v1/namespaces/shop/pods', query: { dryRun: 'All' } }]);
  });

  it('shows warnings', async () => {
    const warning = '299 - "quota payments: 7 of 8 pods fit now", 299 - "a \\"quoted\\" one"';
    const [answer] = await tryManifests(api(() => ({ warning, hidden: false })), readManifests(pod), 'shop');
    expect(answer).toMatchObject({ result: 'warned', messages: ['quota payments: 7 of 8 pods fit now', 'a "quoted" one'] });
  });

  it('says so if the browser hides warnings', async () => {
    const [answer] = await tryManifests(api(() => ({ warning: null, hidden: true })), readManifests(pod), 'shop');
    expect(answer).toMatchObject({ result: 'warned', messages: [expect.stringContaining('hides')] });
  });

  it.each([
    [403, 'refused'],
    [422, 'refused'],
    [500, 'failed'],
    [408, 'failed'],
  ])('%d is %s', async (status, result) => {
    const refuse = () => {
      throw Object.assign(new Error('Forbidden - exceeded quota: payments'), { status });
    };
    const [answer] = await tryManifests(api(refuse), readManifests(pod), 'shop');
    expect(answer).toMatchObject({ result, messages: ['exceeded quota: payments'] });
  });

  it('goes on after an object that can’t be tried', async () => {
    const manifests = readManifests(`apiVersion: none/v1\nkind: Nothing\nmetadata: {name: x}\n---\n${pod}`);
    const answers = await tryManifests(api(silent), manifests, 'shop');
    expect(answers).toMatchObject([{ result: 'failed', messages: ['The cluster serves no Nothing of none/v1.'] }, { result: 'fits' }]);
  });

  it('reads no warning from nothing', () => {
    expect(readWarnings(null)).toEqual([]);
  });
});
