package io.idempotence.client;

import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/** The retry budgets of clients, by name. Thread-safe. */
final class RetryBudgets {
    /** The largest number of clients without settings of their own. With OkHttp their names are hosts, which may come from anywhere. */
    private static final int MOST = 1000;

    /** The key of the budget that further clients share. No client has this name. */
    private static final String OTHER_CLIENTS = "";

    private final LayeredSettings settings;
    private final ConcurrentMap<String, RetryBudget> budgets = new ConcurrentHashMap<>();

    RetryBudgets(LayeredSettings settings) {
        this.settings = settings;
    }

    RetryBudget of(String client) {
        RetryBudget known = budgets.get(client);
        if (known != null) {
            return known;
        }
        String name = budgets.size() < MOST || settings.hasClient(client) ? client : OTHER_CLIENTS;
        return budgets.computeIfAbsent(name, n -> {
            LayeredSettings own = settings.forClient(name);
            return new RetryBudget(
                    own.get(ClientSetting.BUDGET_CAPACITY),
                    own.get(ClientSetting.BUDGET_COST),
                    own.get(ClientSetting.BUDGET_REFUND));
        });
    }
}
