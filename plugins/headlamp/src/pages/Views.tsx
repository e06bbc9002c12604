// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { K8s } from '@kinvolk/headlamp-plugin/lib';
import { Box, Button, TextField, Typography } from '@mui/material';
import { type FormEvent, useState } from 'react';
import { group, useFollowed, useFollowedAll } from '../cluster/headlamp';
import { barsOfView } from '../model/bars';
import { refusalsOf, waitingIn } from '../model/refusals';
import { type Followed, loading } from '../model/staleness';
import type { KubeEvent, LocalQuota } from '../model/types';
import { modeWords, sentences, troubles } from '../model/words';
import { Bars } from '../parts/Bars';
import { Conditions, Refusals, WaitingTable } from '../parts/Lists';
import { Page, Part, paths, To, useClusterName } from '../parts/Page';
import { Note, States } from '../parts/States';
import { Surge } from '../parts/Surge';

// View is one quota as a namespace sees it.
export function View({ view }: { view: LocalQuota }) {
  const { name, namespace, generation } = view.metadata;
  const { mode, scopeSummary, surge } = view.status ?? {};
  const waiting = waitingIn([view]);
  return (
    <Box component="article" aria-label={`Quota ${name} in ${namespace}`} sx={{ mb: 3 }}>
      <Typography component="h3" variant="h6" sx={{ overflowWrap: 'anywhere' }}>
        {name}
      </Typography>
      <Typography variant="body2" sx={{ mb: 1 }}>
        Shared with other namespaces.{mode ? ` Mode ${mode}: ${modeWords[mode]}.` : ''}
        {scopeSummary && scopeSummary !== 'none' ? ` It limits only ${scopeSummary}.` : ''}
      </Typography>
      <Bars bars={barsOfView(view)} quota={`${name} in ${namespace}`} />
      {surge && <Surge surge={surge} of={`${name} in ${namespace}`} here />}
      <Conditions said={troubles(sentences(view.status?.conditions, generation))} />
      {waiting.length > 0 && <WaitingTable waiting={waiting} of={`${name} in ${namespace}`} />}
    </Box>
  );
}

// What was refused in a namespace, or admitted by the mode, and why, as far as events still tell.
export function RefusedIn({ namespace }: { namespace: string }) {
  const events = useFollowed<KubeEvent>(useClusterName(), eventsPathOf(namespace), 'involvedObject.kind=LocalResourceQuota');
  const none = <>No event tells of such a request. By default, the API server keeps events for an hour.</>;
  const refusals = refusalsOf(events.items);
  return (
    <Box component="section" aria-label={`Refused, or admitted by the mode, in ${namespace}`}>
      <Typography component="h3" variant="h6">
        Refused, or admitted by the mode
      </Typography>
      <States of={events} what="events" empty={none}>
        {refusals.length === 0 ? <Note severity="info">{none}</Note> : <Refusals refusals={refusals} />}
      </States>
    </Box>
  );
}

// ViewsOf shows the views of one namespace.
export function ViewsOf({ namespace, followed }: { namespace: string; followed: Followed<LocalQuota> }) {
  return (
    <States
      of={followed}
      what={`LocalResourceQuotas in ${namespace}`}
      empty={<>No shared quota covers {namespace}.</>}
      denied={<>You may not read LocalResourceQuotas in {namespace}. The roles view, edit and admin allow it.</>}
    >
      {[...followed.items]
        .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name))
        .map(view => (
          <View key={view.metadata.name} view={view} />
        ))}
    </States>
  );
}

export function viewsPathOf(namespace: string): string {
  return `${group}/namespaces/${encodeURIComponent(namespace)}/localresourcequotas`;
}

export function eventsPathOf(namespace: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
}

function NamespacePart({ namespace, followed }: { namespace: string; followed: Followed<LocalQuota> }) {
  return (
    <Part title={`Namespace ${namespace}`}>
      <ViewsOf namespace={namespace} followed={followed} />
      <RefusedIn namespace={namespace} />
    </Part>
  );
}

const most = 20;
const validName = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/;

// useNamespaces are those that the reader named, besides those of Headlamp's settings of the cluster. The browser keeps them.
export function useNamespaces(cluster: string): [string[], (namespace: string) => void] {
  const key = `shared-quota.namespaces.${cluster}`;
  const [named, setNamed] = useState<string[]>(() => (localStorage.getItem(key) ?? '').split(',').filter(name => validName.test(name)));
  const add = (namespace: string) => {
    const next = [...new Set([namespace, ...named])].slice(0, most);
    localStorage.setItem(key, next.join(','));
    setNamed(next);
  };
  return [[...new Set([...K8s.cluster.getAllowedNamespaces(cluster), ...named])].slice(0, most), add];
}

function AddNamespace({ add }: { add: (namespace: string) => void }) {
  const [typed, setTyped] = useState('');
  const wrong = typed !== '' && !validName.test(typed);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (validName.test(typed)) {
      add(typed);
      setTyped('');
    }
  };
  return (
    <Box component="form" onSubmit={submit} sx={{ display: 'flex', gap: 1, alignItems: 'flex-start', flexWrap: 'wrap', my: 2 }}>
      <TextField
        size="small"
        label="Namespace"
        value={typed}
        error={wrong}
        helperText={wrong ? 'Lower-case letters, digits and hyphens, 63 at most' : ' '}
        onChange={event => setTyped(event.target.value.trim())}
      />
      <Button type="submit" variant="outlined" sx={{ color: 'text.primary', borderColor: 'text.secondary' }}>
        Show
      </Button>
    </Box>
  );
}

// Named are the views of the namespaces that the reader named, one by one.
function Named({ cluster }: { cluster: string }) {
  const [namespaces, add] = useNamespaces(cluster);
  const followed = useFollowedAll<LocalQuota>(cluster, namespaces.map(viewsPathOf));
  return (
    <>
      <Typography>You may not read the views of all namespaces. Name yours; this browser remembers them.</Typography>
      <AddNamespace add={add} />
      {namespaces.length === 0 && <Note severity="info">No namespace is named yet.</Note>}
      {namespaces.map(namespace => (
        <NamespacePart key={namespace} namespace={namespace} followed={followed[viewsPathOf(namespace)] ?? loading} />
      ))}
    </>
  );
}

// Views shows project owners what is left for their namespaces.
export function Views() {
  const cluster = useClusterName();
  const everywhere = useFollowed<LocalQuota>(cluster, `${group}/localresourcequotas`);
  const namespaces = [...new Set(everywhere.items.map(view => view.metadata.namespace ?? ''))].sort();
  return (
    <Page title="My namespaces">
      <Typography>
        What is left of the shared quotas. <To path={paths.fit}>Does it fit?</To> tries a manifest.
      </Typography>
      {everywhere.phase === 'denied' ? (
        <Named cluster={cluster} />
      ) : (
        <States of={everywhere} what="LocalResourceQuotas" empty={<>No shared quota covers a namespace.</>}>
          {namespaces.slice(0, most).map(namespace => (
            <NamespacePart
              key={namespace}
              namespace={namespace}
              followed={{ ...everywhere, items: everywhere.items.filter(view => view.metadata.namespace === namespace) }}
            />
          ))}
          {namespaces.length > most && <Note severity="warning">The first {most} of {namespaces.length} namespaces are shown.</Note>}
        </States>
      )}
    </Page>
  );
}
