package io.idempotence.client.feign;

import feign.AsyncClient;
import feign.Capability;
import feign.Client;
import feign.Contract;
import feign.InvocationHandlerFactory;
import feign.Retryer;
import feign.codec.Encoder;
import org.jspecify.annotations.Nullable;

/**
 * The Feign capability of the client half. Not for direct use: {@link IdempotentFeign#install} adds it. It is public because Feign calls it
 * by reflection.
 */
public final class IdempotenceCapability implements Capability {
    private final Installation installation;

    IdempotenceCapability(Installation installation) {
        this.installation = installation;
    }

    @Override
    public InvocationHandlerFactory enrich(InvocationHandlerFactory factory) {
        return new IdempotentInvocationHandlerFactory(factory, installation);
    }

    @Override
    public Contract enrich(Contract contract) {
        return type -> installation.feign().learn(contract.parseAndValidateMetadata(type));
    }

    @Override
    public Encoder enrich(Encoder encoder) {
        return new EncoderOfOneBody(encoder, installation.calls());
    }

    @Override
    public Client enrich(Client client) {
        return new ObservingClient(client, installation);
    }

    @Override
    public AsyncClient<Object> enrich(@Nullable AsyncClient<Object> client) {
        return new ObservingAsyncClient<>(
                client == null ? installation.feign().defaultAsyncClient() : client, installation);
    }

    @Override
    public Retryer enrich(Retryer retryer) {
        installation.warnings().retryerIsReplaced(retryer);
        return new RetryerWithoutId(retryer, installation.calls());
    }
}
