package io.idempotence.it.server;

import io.idempotence.it.container.ServletServer;
import io.idempotence.it.container.TomcatServer;

class TomcatWaitingIT extends WaitingContract {
    @Override
    ServletServer.Starter starter() {
        return TomcatServer::start;
    }
}
