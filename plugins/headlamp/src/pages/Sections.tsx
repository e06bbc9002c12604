// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Typography } from '@mui/material';
import { useFollowed } from '../cluster/headlamp';
import { refusalsOf, waitingIn } from '../model/refusals';
import type { KubeEvent, KubeItem, LocalQuota } from '../model/types';
import { Refusals, WaitingTable } from '../parts/Lists';
import { Part, paths, To, useClusterName } from '../parts/Page';
import { Note, States } from '../parts/States';
import { RefusedIn, ViewsOf, viewsPathOf } from './Views';

interface Resource {
  kind: string;
  metadata: { name: string; namespace?: string; uid: string };
}

interface Owned extends KubeItem {
  metadata: KubeItem['metadata'] & { ownerReferences?: { uid: string }[] };
}

// NamespaceSection is what the page of a namespace shows of its quotas.
function NamespaceSection({ name }: { name: string }) {
  const followed = useFollowed<LocalQuota>(useClusterName(), viewsPathOf(name));
  return (
    <Part title="Shared quotas">
      <ViewsOf namespace={name} followed={followed} />
      <RefusedIn namespace={name} />
    </Part>
  );
}

// DeploymentSection says whether a Deployment waits for room, and what is left.
function DeploymentSection({ name, namespace, uid }: { name: string; namespace: string; uid: string }) {
  const cluster = useClusterName();
  const views = useFollowed<LocalQuota>(cluster, viewsPathOf(namespace));
  const sets = useFollowed<Owned>(cluster, `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/replicasets`);
  const events = useFollowed<KubeEvent>(
    cluster,
    `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`,
    `involvedObject.kind=Deployment,involvedObject.name=${name}`
  );
  const own = new Set(sets.items.filter(set => set.metadata.ownerReferences?.some(owner => owner.uid === uid)).map(set => set.metadata.name));
  const waiting = waitingIn(views.items).filter(owner => owner.kind === 'ReplicaSet' && own.has(owner.name));
  const short = refusalsOf(events.items);
  return (
    <Part title="Shared quotas">
      <States of={views} what={`LocalResourceQuotas in ${namespace}`} empty={<>No shared quota covers {namespace}.</>}>
        {waiting.length > 0 ? (
          <>
            <Note severity="warning">This Deployment waits for room. It gets its pods within seconds once there is some.</Note>
            <WaitingTable waiting={waiting} />
          </>
        ) : (
          <Note severity="success">This Deployment doesn’t wait for room.</Note>
        )}
        {short.length > 0 && <Refusals refusals={short} />}
        <Typography sx={{ my: 1 }}>
          <To path={paths.fit}>Does it fit?</To> tries a manifest. What is left:
        </Typography>
        <ViewsOf namespace={namespace} followed={views} />
      </States>
    </Part>
  );
}

// Section is what the plugin adds to Headlamp's own pages.
export function Section({ resource }: { resource: Resource | null | undefined }) {
  if (resource?.kind === 'Namespace') {
    return <NamespaceSection name={resource.metadata.name} />;
  }
  if (resource?.kind === 'Deployment' && resource.metadata.namespace) {
    return <DeploymentSection name={resource.metadata.name} namespace={resource.metadata.namespace} uid={resource.metadata.uid} />;
  }
  return null;
}
