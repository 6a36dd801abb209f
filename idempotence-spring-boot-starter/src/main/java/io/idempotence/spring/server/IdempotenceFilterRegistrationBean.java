package io.idempotence.spring.server;

import io.idempotence.server.servlet.IdempotenceFilter;
import io.idempotence.spring.internal.SetUpException;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterRegistration;
import jakarta.servlet.ServletContext;
import java.util.EnumSet;
import java.util.List;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.core.Ordered;

/**
 * The registration of an {@link IdempotenceFilter} with Spring Boot. The filter sees every dispatch that it needs, as with {@link
 * IdempotenceFilter#install}, and {@code MockMvc} applies it, too.
 *
 * <p>By default the filter is behind all others, so that authentication, authorisation and rate limits precede every claim and every
 * replay. {@link #setOrder} puts it elsewhere.
 *
 * <p>An application that needs filters with different settings declares one such bean for each, on paths of its own. {@code @Idempotent} on
 * handlers counts behind each of them, and is stronger than the settings of the filter. A handler that has it and that no registration
 * covers fails the start. So does the name of a servlet: this bean takes URL patterns only.
 */
public class IdempotenceFilterRegistrationBean extends FilterRegistrationBean<IdempotenceFilter> {
    /**
     * A registration behind all other filters.
     *
     * @param filter the filter; each can be registered once
     * @param urlPatterns what to protect, for example {@code /payments/*}; none protects everything
     */
    public IdempotenceFilterRegistrationBean(IdempotenceFilter filter, String... urlPatterns) {
        super(filter);
        setName("idempotence");
        setUrlPatterns(urlPatterns.length == 0 ? List.of("/*") : List.of(urlPatterns));
        setDispatcherTypes(EnumSet.of(DispatcherType.REQUEST, DispatcherType.ASYNC, DispatcherType.ERROR));
        setOrder(Ordered.LOWEST_PRECEDENCE);
    }

    /**
     * Sets the order among the filters of the application. The lowest precedence puts the filter behind all others, also behind those
     * without an order.
     *
     * @param order greater than that of Spring Security's filter, which is -100 by default
     */
    @Override
    public void setOrder(int order) {
        super.setOrder(order);
        setMatchAfter(order == Ordered.LOWEST_PRECEDENCE);
    }

    /** Fails the start if the bean has names of servlets: the filter would not be mapped to them, and nobody would notice. */
    @Override
    protected FilterRegistration.Dynamic addRegistration(String description, ServletContext context) {
        if (!getServletNames().isEmpty() || !getServletRegistrationBeans().isEmpty()) {
            throw SetUpException.of(
                    "An IdempotenceFilterRegistrationBean has servlet names, but its filter is mapped to URL patterns only: requests of"
                            + " these servlets would run unprotected.",
                    "Pass the URL patterns of the servlets instead, as in new IdempotenceFilterRegistrationBean(filter, \"/api/*\").");
        }
        FilterRegistration.Dynamic registration =
                getFilter().install(context, isMatchAfter(), getUrlPatterns().toArray(String[]::new));
        // In a WAR, a filter of Spring Boot forwards to error pages.
        registration.addMappingForUrlPatterns(EnumSet.of(DispatcherType.FORWARD), isMatchAfter(), "/*");
        return registration;
    }

    /** Does nothing: the filter has mapped itself. */
    @Override
    protected void configure(FilterRegistration.Dynamic registration) {}
}
