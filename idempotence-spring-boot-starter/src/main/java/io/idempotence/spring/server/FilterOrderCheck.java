package io.idempotence.spring.server;

import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.spring.internal.FilterRegistrations;
import io.idempotence.spring.internal.SetUpException;
import java.util.Map;
import org.springframework.beans.factory.ListableBeanFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.web.servlet.AbstractFilterRegistrationBean;
import org.springframework.boot.web.servlet.FilterRegistrationBean;

/** The check that no filter of this library runs before Spring Security's. */
final class FilterOrderCheck implements SmartInitializingSingleton {
    private static final String AUTO_CONFIGURED = "idempotenceFilterRegistration";

    private final ListableBeanFactory beans;

    FilterOrderCheck(ListableBeanFactory beans) {
        this.beans = beans;
    }

    @Override
    public void afterSingletonsInstantiated() {
        Map<String, AbstractFilterRegistrationBean<?>> registrations = FilterRegistrations.in(beans);
        registrations.forEach((bean, one) -> {
            if (one instanceof FilterRegistrationBean<?> ours
                    && ours.getFilter() instanceof IdempotenceFilter
                    && ours.isEnabled()
                    && !ours.isMatchAfter()) {
                registrations.values().stream()
                        .filter(FilterRegistrations::isSecurity)
                        .filter(security -> ours.getOrder() <= security.getOrder())
                        .forEach(security -> refuse(bean, ours, security));
            }
        });
    }

    private static void refuse(
            String bean, FilterRegistrationBean<?> ours, AbstractFilterRegistrationBean<?> security) {
        String setting =
                bean.equals(AUTO_CONFIGURED) ? "idempotence.server.filter-order" : "the order of '" + bean + "'";
        throw SetUpException.of(
                "The idempotence filter has the order " + ours.getOrder() + ", and Spring Security's filter has "
                        + security.getOrder()
                        + ": requests would be claimed and responses replayed before the caller is"
                        + " authenticated and authorised.",
                "Set " + setting + " to more than " + security.getOrder()
                        + ", or remove it: by default the filter is behind all others.");
    }
}
