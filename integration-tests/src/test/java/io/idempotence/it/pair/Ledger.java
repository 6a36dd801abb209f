package io.idempotence.it.pair;

import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The payments that were really made: how many for each order, under whatever ID. */
final class Ledger {
    private final ConcurrentMap<String, Integer> payments = new ConcurrentHashMap<>();
    private final AtomicInteger receipts = new AtomicInteger();

    /** Pays, and gives a receipt that no other payment has. */
    String pay(String order) {
        payments.merge(order, 1, Integer::sum);
        return "receipt " + receipts.incrementAndGet() + " for " + order;
    }

    Map<String, Integer> payments() {
        return Map.copyOf(payments);
    }

    /** Each of these orders, once. */
    static Map<String, Integer> onceEach(Set<String> orders) {
        Map<String, Integer> once = new ConcurrentHashMap<>();
        orders.forEach(order -> once.put(order, 1));
        return once;
    }
}
