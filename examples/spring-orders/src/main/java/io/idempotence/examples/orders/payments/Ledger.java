package io.idempotence.examples.orders.payments;

import java.util.List;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.stereotype.Repository;
import org.springframework.transaction.annotation.Transactional;

/** The payments, in PostgreSQL. It has no check for duplicates: that is the starter's job. */
@Repository
class Ledger {
    private final JdbcClient database;

    Ledger(JdbcClient database) {
        this.database = database;
        database.sql(
                        "create table if not exists payment (number bigserial primary key, order_number bigint, cents int)")
                .update();
    }

    @Transactional
    public Payment pay(PaymentRequest request) {
        return database.sql(
                        "insert into payment (order_number, cents) values (?, ?) returning number, order_number as \"order\", cents")
                .params(request.order(), request.cents())
                .query(Payment.class)
                .single();
    }

    List<Payment> of(long order) {
        return database.sql(
                        "select number, order_number as \"order\", cents from payment where order_number = ? order by number")
                .params(order)
                .query(Payment.class)
                .list();
    }
}
